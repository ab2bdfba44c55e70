package cost

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"dorylus/engine"
)

func rates(t *testing.T, s Servers) *engine.Rates {
	t.Helper()
	r, err := load(t, "").Price(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever was used: the parts, as they are printed, add up to the printed total in
// every digit; each part is what it should be within half a unit; two segments cost
// what they cost apart.
func TestBillAddsUp(t *testing.T) {
	r := rates(t, Servers{Graph: "c5n.2xlarge", Graphs: 4, Param: "c5.2xlarge", Params: 2, Lambda: true})
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		u := Usage{
			Seconds:    rnd.ExpFloat64() * math.Pow(10, float64(rnd.IntN(6))),
			LambdaMBms: map[string]int64{X86: rnd.Int64N(1e12), ARM: rnd.Int64N(1e12)},
			Requests:   1 + rnd.Int64N(1e6), Streamed: rnd.Int64N(1e12), Logged: rnd.Int64N(1e9), Zone: rnd.Int64N(1e12), NAT: rnd.Int64N(1e12),
		}
		b := u.Bill(r)
		total, known := b.Total()
		if !known {
			t.Fatalf("seed %d: no price of %s", seed, b.Missing)
		}
		sum := new(big.Rat)
		for _, p := range b.Parts() {
			sum.Add(sum, decimal(t, strconv.FormatFloat(p.Cost.USD(), 'f', -1, 64)))
		}
		if want := decimal(t, strings.TrimPrefix(total.Exact(), "$")); sum.Cmp(want) != 0 {
			t.Errorf("seed %d: parts add up to %s, total is %s", seed, sum.FloatString(12), want.FloatString(12))
		}
		for _, c := range []struct {
			name string
			got  Dollars
			want float64
		}{
			{"graph servers", b.Graph, u.Seconds * 4 * 0.432 / 3600},
			{"parameter servers", b.Param, u.Seconds * 2 * 0.34 / 3600},
			{"duration", b.Duration, (float64(u.LambdaMBms[X86])*0.0000166667 + float64(u.LambdaMBms[ARM])*0.0000133334) / 1024 / 1000},
			{"requests", b.Requests, float64(u.Requests) * 0.2 / 1e6},
			{"logs", b.Logs, float64(u.Logged) * 0.5 / 1e9},
			{"traffic", b.Traffic, (float64(u.Zone)*0.02 + float64(u.NAT)*0.045 + float64(u.Streamed)*0.008) / 1e9},
		} {
			if d := math.Abs(c.got.USD() - c.want); d > 0.5000001e-9+1e-14*c.want {
				t.Errorf("seed %d: %s cost %s, want %.12f", seed, c.name, c.got.Exact(), c.want)
			}
		}
		if twice, _ := b.Plus(b).Total(); twice != 2*total {
			t.Errorf("seed %d: twice %s is %s", seed, total.Exact(), twice.Exact())
		}
	}
}

func decimal(t *testing.T, text string) *big.Rat {
	t.Helper()
	x, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return x
}

// What has no price is said, and the total is not known.
func TestNothingIsLeftOutSilently(t *testing.T) {
	used := map[string]int64{X86: 5}
	for name, c := range map[string]struct {
		rates *engine.Rates
		use   Usage
		want  string
	}{
		"no prices":      {nil, Usage{Seconds: 1}, "the servers"},
		"lambda":         {rates(t, Servers{Graph: "c5.2xlarge", Graphs: 1}), Usage{Seconds: 1, Requests: 1, LambdaMBms: used}, "Lambda workers"},
		"an odd machine": {rates(t, Servers{Graph: "c5.2xlarge", Graphs: 1, Lambda: true}), Usage{Requests: 1, LambdaMBms: map[string]int64{"riscv": 1}}, "Lambda workers on riscv"},
		"all":            {rates(t, Servers{Graph: "c5.2xlarge", Graphs: 1, Lambda: true}), Usage{Seconds: 1, Requests: 1, LambdaMBms: used}, ""},
	} {
		b := c.use.Bill(c.rates)
		if _, known := b.Total(); b.Missing != c.want || known != (c.want == "") {
			t.Errorf("%s: missing %q, known %v; want %q", name, b.Missing, known, c.want)
		}
	}
}

func TestDollarsInWords(t *testing.T) {
	for usd, want := range map[float64]string{
		0: "$0", 1.2345: "$1.23", 12: "$12.00", 0.5: "$0.50", 0.12345: "$0.123", 0.000144: "$0.000144", 0.00001: "$0.00001", 2e-9: "$0.000000002", -0.25: "-$0.25", 63.296: "$63.30",
	} {
		if got := FromUSD(usd).String(); got != want {
			t.Errorf("%v is %s, want %s", usd, got, want)
		}
	}
	if got := FromUSD(63.296000001).Exact(); got != "$63.296000001" {
		t.Errorf("exactly %s", got)
	}
	for _, x := range [][2]float64{{0, 1}, {1, 0}, {math.NaN(), 1}, {1, math.NaN()}} {
		if v := Value(x[0], x[1]); !math.IsNaN(v) {
			t.Errorf("value of %v s and $%v is %v", x[0], x[1], v)
		}
	}
	if v := Value(4, 0.5); v != 0.5 {
		t.Errorf("value of 4 s and $0.5 is %v", v)
	}
}

// A run that is resumed, on another machine, owes what both segments cost, by the
// time that had passed when the first one was killed.
func TestMeterOfAResumedRun(t *testing.T) {
	first, second := rates(t, Servers{Graph: "c5n.2xlarge", Graphs: 1}), rates(t, Servers{Graph: "c5.2xlarge", Graphs: 1})
	var m Meter
	step := func(events ...engine.Event) string {
		for _, e := range events {
			m.Event(e)
		}
		total, _ := m.Bill().Total()
		return total.Exact()
	}
	for i, c := range []struct {
		got, want string
	}{
		{step(engine.RunStart{Rates: first}), "$0"},
		{step(engine.EpochDone{Epoch: 0, Took: 3, At: 50}), "$0.006"},
		{step(engine.Evaluated{Epoch: 0, Took: 1, At: 60}, engine.Checkpointed{Took: 40}), "$0.012"},
		{step(engine.EpochDone{Epoch: 1, Took: 3, At: 125}), "$0.015"},
		{step(engine.RunStart{Rates: second, FirstEpoch: 1}), "$0.015"}, // epoch 1 is run again
		{step(engine.EpochDone{Epoch: 1, Took: 3, At: 90}), "$0.0235"},
		{step(engine.RunDone{Seconds: 180}), "$0.032"},
	} {
		if c.got != c.want {
			t.Errorf("step %d: owes %s, want %s", i, c.got, c.want)
		}
	}
	if s := m.Seconds(); s != 125+180 {
		t.Errorf("%v seconds, want 305", s)
	}
	if note := m.Note(); !strings.Contains(note, "1 c5.2xlarge at $0.34 an hour") || !strings.Contains(note, "earlier segments by the prices that they began with") {
		t.Errorf("note: %s", note)
	}
	if got := step(engine.RunStart{}, engine.RunStart{Rates: first}); got != "$0.032" {
		t.Errorf("an unpriced segment: owes %s", got)
	}
	if _, known := m.Bill().Total(); known || !strings.Contains(m.Note(), "the total is not known: the servers had no price") {
		t.Errorf("an unpriced segment: total known %v; note: %s", known, m.Note())
	}
}

// Invocations under way are in the live bill, once.
func TestMeterOfInvocationsUnderWay(t *testing.T) {
	var m Meter
	r := rates(t, Servers{Graph: "c5n.2xlarge", Graphs: 1, Lambda: true})
	const gbs = 1024 * 1000
	held := func(n, seconds int64) engine.LambdaHeld {
		return engine.LambdaHeld{Invocations: n, MBms: map[string]int64{X86: seconds * gbs}}
	}
	used := engine.LambdaUsed{Arch: X86, MemoryMB: 1024, BilledMS: 90_000}
	for i, c := range []struct {
		event engine.Event
		want  int64 // GB-seconds
		calls int64
	}{
		{engine.RunStart{Rates: r}, 0, 0}, {held(2, 60), 60, 2}, {held(2, 120), 120, 2}, {used, 210, 3}, {held(1, 70), 160, 2}, {used, 250, 3}, {held(0, 0), 180, 2},
		{held(1, 5), 185, 3}, {engine.RunStart{Rates: r}, 185, 3}, {used, 275, 4},
	} {
		m.Event(c.event)
		b := m.Bill()
		if want := FromUSD(float64(c.want) * 0.0000166667); b.Duration-want > 1 || want-b.Duration > 1 || b.Requests != FromUSD(float64(c.calls)*0.2e-6) {
			t.Errorf("step %d, %s: %s and %s, want %s for %d GB-s and %d requests", i, c.event.Kind(), b.Duration.Exact(), b.Requests.Exact(), want.Exact(), c.want, c.calls)
		}
	}
}
