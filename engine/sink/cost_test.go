package sink

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/cost"
)

// priced is script on one c5n.2xlarge with Lambda, of which two invocations ended.
func priced(t *testing.T) []engine.Event {
	t.Helper()
	table, err := cost.Load("")
	if err != nil {
		t.Fatal(err)
	}
	rates, err := table.Price(cost.Servers{Graph: "c5n.2xlarge", Graphs: 1, Lambda: true})
	if err != nil {
		t.Fatal(err)
	}
	events := script()
	first := events[0].(engine.RunStart)
	first.Rates, first.Mode = rates, "lambda"
	events[0] = first
	used := engine.LambdaUsed{Arch: cost.X86, MemoryMB: 1024, BilledMS: 600, InitMS: 40, Modelled: true}
	return append(events, used, used, engine.Moved{Zone: 5e6})
}

const pricedNote = "time measured here, priced as 1 c5n.2xlarge at $0.432 an hour (us-east-1 on demand, 2026-07-20, price files of AWS's Karpenter, those of 6 and 20 Jul 2026 agree); parameter servers on the same machines; Lambda modelled by the local service, by prices of 2026-11-30, third-party tables, those of 2024 to 2026 agree; traffic by prices of 2026-11-30, one source or memory, unverified; without loading data and AWS's minimum of 60 s"

func TestSummaryHasAllPartsOfTheBill(t *testing.T) {
	s := summarise(priced(t)...)
	want := map[string]Number{
		"graph_servers":     0.0003, // 2.5 s of 0.432 an hour
		"parameter_servers": 0,
		"lambda_duration":   0.00002, // 1.2 GB-s
		"lambda_requests":   0.0000004,
		"lambda_logs":       0,
		"traffic":           0.0001, // 5 MB, at both ends
		"total":             0.0004204,
	}
	got, _ := json.Marshal(s.Cost)
	wanted, _ := json.Marshal(want)
	if !bytes.Equal(got, wanted) {
		t.Errorf("got  %s\nwant %s", got, wanted)
	}
	if v := 1 / (2.5 * 0.0004204); math.Abs(float64(s.Value)/v-1) > 1e-12 {
		t.Errorf("value %v, want %v", s.Value, v)
	}
	if s.CostNote != pricedNote {
		t.Errorf("note\n%s\nwant\n%s", s.CostNote, pricedNote)
	}
	const line = "Cost       $0.0004204: graph servers $0.0003, Lambda GB-seconds $0.00002, Lambda requests $0.0000004, traffic $0.0001; value 951.5 (1/(seconds·dollars))\nPriced     time measured here,"
	if words := s.Words(); !strings.Contains(words, line) {
		t.Errorf("words\n%s\nlack\n%s", words, line)
	}
}

// The bill needs nothing but the events: not even the table of that day.
func TestBillFromTheFileIsTheSame(t *testing.T) {
	var b bytes.Buffer
	j := NewJSONL(&b, false, nil)
	send(j, priced(t)...)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again := NewTally()
	if err := ReadEvents(&b, again); err != nil {
		t.Fatal(err)
	}
	got, _ := again.Summary().JSON()
	want, _ := summarise(priced(t)...).JSON()
	if !bytes.Equal(got, want) {
		t.Errorf("from the file\n%s\nfrom the run\n%s", got, want)
	}
}

func TestBillOfSeveralRunsIsTheMean(t *testing.T) {
	runs := []Summary{summarise(priced(t)...), summarise(priced(t)...), summarise(append(priced(t), engine.Moved{Zone: 5})...)}
	s := Merge(runs)
	sum := cost.Dollars(0)
	for _, p := range (cost.Bill{}).Parts() {
		sum += cost.FromUSD(float64(s.Cost[p.Key]))
	}
	if sum != cost.FromUSD(float64(s.Cost[total])) || s.Cost["traffic"] != 0.000100000 {
		t.Errorf("means %v: the parts add up to %s", s.Cost, sum.Exact())
	}
	if v := 1 / (float64(s.TotalSeconds) * float64(s.Cost[total])); math.Abs(float64(s.Value)/v-1) > 1e-12 {
		t.Errorf("value %v, want %v", s.Value, v)
	}
	if got := Merge([]Summary{runs[0], summarise(script()...)}); got.Cost[total].Known() || got.Value.Known() {
		t.Errorf("a run without a price: total %v, value %v; want neither", got.Cost[total], got.Value)
	}
}

func TestProgressShowsTheBill(t *testing.T) {
	var b bytes.Buffer
	tally := NewTally()
	p := NewProgress(&b, Plain, clock())
	p.Bill = tally.Bill
	send(engine.Listeners{tally, p}, priced(t)...)
	if want := "30 ms/epoch  $0.000009\n"; !strings.HasSuffix(b.String(), want) { // 75 ms
		t.Errorf("got\n%s\nwant it to end with %q", b.String(), want)
	}
	b.Reset()
	p = NewProgress(&b, JSONed, clock())
	p.Bill = tally.Bill
	send(p, priced(t)...)
	if want := `"epoch_seconds":0.03,"cost_usd":0.0004204}` + "\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("got\n%s\nwant it to end with %q", b.String(), want)
	}
}
