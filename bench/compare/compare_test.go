package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"dorylus/engine"
	"dorylus/engine/cost"
	"dorylus/engine/sink"
	"dorylus/engine/task"
)

// rates are 1 server for $3.60 an hour, a tenth of a cent a second, and Lambda.
func rates(lambda bool) *engine.Rates {
	r := &engine.Rates{
		Region:  "us-east-1",
		Graph:   []engine.ServerRate{{Type: "c9.large", Count: 1, USDPerHour: 3.6, Origin: engine.Origin{Date: "2026-07-20", From: "a list"}}},
		Traffic: engine.Origin{Date: "2026-11-30", From: "a list"},
	}
	if lambda {
		r.Lambda = &engine.LambdaRates{GBs: map[string]float64{cost.X86: 0.001}, Request: 0.0005, Origin: engine.Origin{Date: "2026-11-30", From: "a list"}}
	}
	return r
}

// run is the events of a run in which val are the validation accuracies, one epoch
// each, and which ends for a reason. Lambda's invocations are billed after its end.
func run(mode string, seed uint64, took float64, reason string, val ...float64) []engine.Event {
	events := []engine.Event{engine.RunStart{
		Mode: mode, Model: "gcn", Dataset: "cora", Seed: seed, Vertices: 2708, Edges: 10556, TrainRows: 140, ValRows: 500, TestRows: 1000,
		Pipeline: "sync", Intervals: 2, Threads: 2, Epochs: 10, Device: "cpu/avx2", Rates: rates(mode == "lambda"),
	}}
	at := 0.0
	for e, v := range val {
		id := func(step int) task.ID { return task.ID{Epoch: e, Step: step} }
		nanos := func(share float64) time.Duration { return time.Duration(took * share * 1e9) }
		at += took
		events = append(events,
			engine.TaskDone{Task: task.Task{ID: id(0), Kind: task.GA}, Name: "GA", Took: nanos(0.25)},
			engine.TaskDone{Task: task.Task{ID: id(1), Kind: task.AV}, Name: "∇AV", Took: nanos(0.5)},
			engine.EpochDone{Epoch: e, Loss: 1 / float64(e+1), Took: took, At: at, Update: took / 8},
			engine.Evaluated{Epoch: e, Metric: "accuracy", Train: 0.9, Val: v, Test: v + 0.01, At: at})
	}
	sha := map[string]string{"cpu": "aa", "lambda": "aa"}[mode] + strings.Repeat("00", 31)
	events = append(events, engine.RunDone{Reason: reason, Epochs: len(val), Seconds: at, Weights: sha, Predicts: sha})
	if mode == "lambda" {
		events = append(events, engine.LambdaUsed{Arch: cost.X86, MemoryMB: 1024, BilledMS: 250, Modelled: true})
	}
	return events
}

// add gives c a mode's runs.
func add(c *Comparison, name string, runs ...[]engine.Event) string {
	rec := &Recorder{}
	var sums []sink.Summary
	for _, events := range runs {
		tally := sink.NewTally()
		for _, e := range events {
			engine.Listeners{tally, rec}.Event(e)
		}
		sums = append(sums, tally.Summary())
	}
	c.Add(name, sink.Merge(sums), rec.Curves())
	return rec.Of
}

func check(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// lines are the lines of text that hold one of the words.
func lines(text string, words ...string) string {
	var found []string
	for line := range strings.Lines(text) {
		for _, w := range words {
			if strings.Contains(line, w) {
				found = append(found, line)
				break
			}
		}
	}
	return strings.Join(found, "")
}

func TestText(t *testing.T) {
	c := &Comparison{Target: 0.7, Runs: 1}
	add(c, "cpu", run("cpu", 7, 0.5, "target", 0.5, 0.6, 0.7))
	add(c, "lambda", run("lambda", 7, 0.02, "target", 0.5, 0.6, 0.7))
	add(c, "cpu:async", run("cpu", 7, 0.25, "epochs", 0.5, 0.65, 0.6, 0.6))
	text := c.Text()
	table, notes, _ := strings.Cut(text, "\n\nMeasured")
	check(t, table, `gcn on cora: 2,708 vertices, 10,556 edges; seed 7

                                        cpu         lambda      cpu:async
accuracy, test at best validation   71.00 %        71.00 %        66.00 %
target, 70.00 % in validation       reached        reached         missed
epochs to the target                      3              3            > 4
seconds to the target              1.5000 s       0.0600 s     > 1.0000 s
time per epoch, median             500.0 ms        20.0 ms       250.0 ms
workers' time                      1.3125 s       0.0525 s       0.8750 s
  GA                               0.3750 s       0.0150 s       0.2500 s
  ∇AV                              0.7500 s       0.0300 s       0.5000 s
  WU                               0.1875 s       0.0075 s       0.1250 s
bytes moved                               -              -              -
dollars (Lambda's are modelled)
  graph servers                     0.00150        0.00006        0.00100
  Lambda GB-seconds                       0        0.00025              0
  Lambda requests                         0        0.00050              0
  total                             0.00150        0.00081        0.00100
value, 1/(seconds·dollars)            444.4         20,576              -
value, relative                        1.00           46.3              -
weights                            aa000000  the same bits  the same bits`)
	price := "time measured here, priced as 1 c9.large at $3.6 an hour (us-east-1 on demand, 2026-07-20, a list); parameter servers on the same machines; "
	for _, want := range []string{
		" here: accuracy, epochs, times, bytes; cpu/avx2 with 2 threads, ",
		"\nPriced from the table: these times",
		"\n  cpu, cpu:async: " + price + "no Lambda",
		"\n  lambda: " + price + "Lambda modelled by the local service, by prices of 2026-11-30, a list",
		"\nModelled: Lambda's dollars of lambda; ",
		"\nNo value of cpu:async: it missed the target: the best in validation was 65.00 % after 2 of 4 epochs.\n",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in\n%s", want, notes)
		}
	}
	if strings.Contains(notes, "Without --target-accuracy") || strings.Contains(notes, "relative") {
		t.Errorf("notes that do not belong here:\n%s", notes)
	}
}

func TestTextOfSeveralRuns(t *testing.T) {
	c := &Comparison{Runs: 3, Target: 0.7}
	add(c, "cpu", run("cpu", 1, 0.5, "target", 0.5, 0.7), run("cpu", 2, 0.5, "target", 0.5, 0.6, 0.7), run("cpu", 3, 0.5, "target", 0.5, 0.6, 0.6, 0.74))
	add(c, "lambda", run("lambda", 1, 0.25, "target", 0.7), run("lambda", 2, 0.25, "epochs", 0.5, 0.6), run("lambda", 3, 0.25, "target", 0.5, 0.75))
	text := c.Text()
	check(t, lines(text, "runs from", "test at", "target", "median", "total", "over runs", "value, rel", "weights"), `gcn on cora: 2,708 vertices, 10,556 edges; 3 runs from seed 1 in each mode, means ± sample standard deviations
accuracy, test at best validation   72.33 ± 2.31 %     69.33 ± 7.64 %
target, 70.00 % in validation              reached  2 of 3 reached it
epochs to the target                     3.0 ± 1.0        > 1.7 ± 0.6
seconds to the target              1.500 ± 0.500 s  > 0.417 ± 0.144 s
time per epoch, median                  500 ± 0 ms         250 ± 0 ms
  total                                0.001500000        0.001166667
    ± over runs                        0.000500000        0.000144338
value, relative                               1.00                  -
weights                                   5f638eb9      the same bits
No value of lambda: 1 of 3 runs missed the target; the mean of their best in validation is 68.33 %.
`)
}

func TestValueNeedsTheTarget(t *testing.T) {
	for _, test := range []struct {
		reason string
		target float64
		why    string
	}{
		{"epochs", 0, ""},
		{"patience", 0, ""},
		{"target", 0.6, ""},
		{"epochs", 0.6, "it missed the target: the best in validation was 50.00 % after 1 of 2 epochs"},
		{"patience", 0.6, "it missed the target"},
		{"max-cost", 0, "--max-cost stopped it"},
		{"max-cost", 0.6, "--max-cost stopped it"},
		{"interrupted", 0, "it was interrupted"},
		{"failed", 0, "it failed"},
	} {
		c := &Comparison{Target: test.target, Runs: 1}
		add(c, "cpu", run("cpu", 7, 0.5, test.reason, 0.5, 0.4))
		m := c.Modes[0]
		if !strings.HasPrefix(m.Why, test.why) || (m.Why == "") != (test.why == "") {
			t.Errorf("%s, target %v: %q, want %q", test.reason, test.target, m.Why, test.why)
		}
		if got := strings.Contains(lines(c.Text(), "seconds to"), "> "); got != (test.why != "") {
			t.Errorf("%s, target %v: the table says that it would have taken longer: %v", test.reason, test.target, got)
		}
		if m.Value.Known() != (test.why == "") || m.Relative.Known() != (test.why == "") {
			t.Errorf("%s, target %v: value %v, relative %v", test.reason, test.target, m.Value, m.Relative)
		}
	}
	c := &Comparison{Runs: 2}
	add(c, "cpu", run("cpu", 1, 0.5, "epochs", 0.5))
	add(c, "lambda", run("lambda", 1, 0.5, "epochs", 0.5), run("lambda", 2, 0.5, "epochs", 0.5))
	if c.Modes[0].Why != "only 1 of 2 runs were made" || c.Modes[1].Relative.Known() || !c.Modes[1].Value.Known() {
		t.Errorf("a mode with too few runs: %q; the other has value %v, relative %v", c.Modes[0].Why, c.Modes[1].Value, c.Modes[1].Relative)
	}
	if !strings.Contains(c.Text(), "No relative values, since the first mode, cpu, has no value.") {
		t.Errorf("the text does not say why there are no relative values:\n%s", c.Text())
	}
}

func TestWithoutPrices(t *testing.T) {
	events := run("cpu", 1, 0.5, "epochs", 0.5, 0.6)
	first := events[0].(engine.RunStart)
	first.Rates = nil
	events[0] = first
	c := &Comparison{Runs: 1}
	of := add(c, "cpu", events)
	if m := c.Modes[0]; m.Why != "its cost is not known: not priced: the run was started without prices" {
		t.Errorf("%q", m.Why)
	}
	check(t, lines(c.Text(), "total ", "value, "), `  total                                   -
value, 1/(seconds·dollars)                -
value, relative                           -
`)
	if _, err := c.Plot("png", of); err != nil {
		t.Error(err)
	}
}

// The parts add up in the table as it is read, and in JSON.
func TestPartsAddUp(t *testing.T) {
	c := &Comparison{Runs: 2}
	for i, mode := range []string{"cpu", "lambda"} {
		add(c, mode, run(mode, 1, 0.0123457*float64(i+1), "epochs", 0.5, 0.6), run(mode, 2, 0.00333331, "epochs", 0.5, 0.6, 0.6))
	}
	for _, m := range c.Modes {
		var sum cost.Dollars
		for _, p := range (cost.Bill{}).Parts() {
			sum += cost.FromUSD(float64(m.Cost[p.Key]))
		}
		if total := cost.FromUSD(float64(m.Cost["total"])); sum != total || total == 0 {
			t.Errorf("%s: %v adds up to %s", m.Name, m.Cost, sum.Exact())
		}
	}
	sums, totals := map[int]cost.Dollars{}, map[int]cost.Dollars{}
	inBill := false
	for line := range strings.Lines(c.Text()) {
		fields := strings.Fields(line)
		switch inBill = inBill && strings.HasPrefix(line, "  "); {
		case strings.HasPrefix(line, "dollars"):
			inBill = true
			continue
		case !inBill || strings.Contains(line, "±"):
			continue
		}
		for i, text := range fields[len(fields)-2:] {
			var usd float64
			if _, err := fmt.Sscan(text, &usd); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if strings.HasPrefix(line, "  total") {
				totals[i] = cost.FromUSD(usd)
			} else {
				sums[i] += cost.FromUSD(usd)
			}
		}
	}
	if len(totals) != 2 || sums[0] != totals[0] || sums[1] != totals[1] {
		t.Errorf("the table's parts add up to %v, its totals are %v:\n%s", sums, totals, c.Text())
	}
}

func TestJSON(t *testing.T) {
	c := &Comparison{Target: 0.7, Runs: 1}
	events := run("cpu", 7, 0.5, "target", 0.5, 0.7)
	add(c, "cpu", events)
	add(c, "lambda", run("lambda", 7, 0.5, "epochs", 0.5, 0.6))
	data, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Modes []map[string]json.RawMessage `json:"modes"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil || len(got.Modes) != 2 {
		t.Fatalf("%v:\n%s", err, data)
	}
	tally := sink.NewTally()
	for _, e := range events {
		tally.Event(e)
	}
	alone, err := tally.Summary().JSON()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]json.RawMessage
	if err := json.Unmarshal(alone, &want); err != nil {
		t.Fatal(err)
	}
	for key, value := range want {
		var a, b bytes.Buffer
		if json.Compact(&a, got.Modes[0][key]) != nil || json.Compact(&b, value) != nil || a.String() != b.String() {
			t.Errorf("%s is %s, in the summary of train %s", key, got.Modes[0][key], value)
		}
		delete(got.Modes[0], key)
	}
	for key, want := range map[string][2]string{"name": {`"cpu"`, `"lambda"`}, "target_reached": {"true", "false"}, "value_relative": {"1", "null"}} {
		for i, m := range got.Modes {
			if string(m[key]) != want[i] {
				t.Errorf("modes[%d].%s is %s, want %s", i, key, m[key], want[i])
			}
		}
		delete(got.Modes[0], key)
	}
	if len(got.Modes[0]) != 0 {
		t.Errorf("keys that nobody expects: %v", got.Modes[0])
	}
	if second := got.Modes[1]; string(second["value"]) != "null" || !strings.Contains(string(second["value_note"]), "missed the target") {
		t.Errorf("a missed target: value %s, note %s", second["value"], second["value_note"])
	}
}

func TestCurvesEndWithTheBill(t *testing.T) {
	c := &Comparison{Runs: 2}
	of := add(c, "lambda", run("lambda", 1, 0.5, "epochs", 0.5, 0.6), run("lambda", 2, 0.5, "epochs", 0.7))
	want := []Curve{{{0.5, 0.0005, 0.5}, {1, 0.001, 0.6}, {1, 0.00175, 0.6}}, {{0.5, 0.0005, 0.7}, {0.5, 0.00125, 0.7}}}
	if got := c.Modes[0].Curves; fmt.Sprint(got) != fmt.Sprint(want) || of != "validation accuracy" {
		t.Errorf("%s: got %v, want %v", of, got, want)
	}
	var sum float64
	for _, curve := range c.Modes[0].Curves {
		sum += curve[len(curve)-1].USD / 2
	}
	if total := float64(c.Modes[0].Cost["total"]); math.Abs(sum-total) > 1e-12 {
		t.Errorf("the curves end at %v dollars on average, the bill is %v", sum, total)
	}
}
