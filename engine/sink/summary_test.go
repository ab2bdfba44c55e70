package sink

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"dorylus/engine"
)

func summarise(events ...engine.Event) Summary {
	t := NewTally()
	send(t, events...)
	return t.Summary()
}

func TestSummaryJSON(t *testing.T) {
	data, err := summarise(script()...).JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "mode": "cpu",
  "model": "gcn",
  "dataset": "cora",
  "seed": 7,
  "vertices": 2708,
  "edges": 10556,
  "epochs_run": 3,
  "best_epoch": 2,
  "loss": 1.25,
  "train_acc": 0.91,
  "val_acc": 0.75,
  "test_acc": 0.7,
  "metric": "accuracy",
  "epoch_seconds": 0.02,
  "total_seconds": 2.5,
  "peak_memory_bytes": 3145728,
  "task_seconds": {
    "AV": 0.006,
    "GA": 0.009,
    "WU": 0.003,
    "eval": 0.012,
    "∇GA": 0.0045
  },
  "staleness": {
    "0": 21,
    "1": 3
  },
  "row_age": {
    "0": 15,
    "1": 6,
    "2": 3
  },
  "cost_usd": {
    "graph_servers": null,
    "lambda_duration": null,
    "lambda_logs": null,
    "lambda_requests": null,
    "parameter_servers": null,
    "total": null,
    "traffic": null
  },
  "cost_note": "not priced: the run was started without prices",
  "value": null,
  "weights_sha256": "` + strings.Repeat("ab", 32) + `",
  "predictions_sha256": "` + strings.Repeat("cd", 32) + `",
  "reason": "epochs",
  "pipeline": "async",
  "staleness_bound": 1,
  "intervals": 2,
  "threads": 2,
  "device": "cpu/avx2",
  "version": "v1"
}
`
	if got := string(data); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSummaryCountsFromSums(t *testing.T) {
	for _, every := range []bool{false, true} {
		var b bytes.Buffer
		j := NewJSONL(&b, every, nil)
		send(j, script()...)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		again := NewTally()
		if err := ReadEvents(&b, again); err != nil {
			t.Fatal(err)
		}
		got, _ := again.Summary().JSON()
		want, _ := summarise(script()...).JSON()
		if !bytes.Equal(got, want) {
			t.Errorf("every task: %v; from the file\n%s\nfrom the run\n%s", every, got, want)
		}
	}
}

func TestSummaryWithoutValidationTakesTheLastEvaluation(t *testing.T) {
	s := start(3, 0)
	s.ValRows = 0
	events := append([]engine.Event{s}, epoch(0, 1.9, 0, 0.4)...)
	events = append(events, epoch(1, 1.5, math.NaN(), 0.7)...)
	events = append(events, epoch(2, 1.2, 0, 0.6)...)
	got := summarise(append(events, done("epochs"))...)
	if got.BestEpoch != 3 || got.TestAcc != 0.6 || got.ValAcc.Known() {
		t.Errorf("best epoch %v, test %v, val %v; want 3, 0.6 and none", got.BestEpoch, got.TestAcc, got.ValAcc)
	}
	data, err := got.JSON()
	if err != nil || !bytes.Contains(data, []byte(`"val_acc": null`)) {
		t.Errorf("an accuracy on nothing must be null (%v):\n%s", err, data)
	}
}

func TestSummaryOfAnUnfinishedRun(t *testing.T) {
	got := summarise(append([]engine.Event{start(3, 0)}, epoch(0, 1.9, 0.5, 0.4)...)...)
	if got.Reason != "unfinished" || got.EpochsRun != 1 || math.Abs(float64(got.TotalSeconds)-0.015) > 1e-12 {
		t.Errorf("reason %q, epochs %v, seconds %v; want unfinished, 1, 0.015", got.Reason, got.EpochsRun, got.TotalSeconds)
	}
	if _, err := summarise().JSON(); err != nil {
		t.Errorf("a run without events: %v", err)
	}
}

// A run that was killed in its third epoch and resumed from the second counts
// every epoch once.
func TestSummaryOfAResumedRun(t *testing.T) {
	first := []engine.Event{start(3, 0)}
	first = append(first, epoch(0, 1.9, 0.5, 0.4)...)
	first = append(first, epoch(1, 1.5, 0.75, 0.7)...)
	first = append(first, epoch(2, 9, 0.99, 0.1)...) // lost with the process

	second := []engine.Event{start(3, 2)}
	second = append(second, epoch(2, 1.25, 0.75, 0.8)...)
	second = append(second, done("epochs"))
	got := summarise(append(first, second...)...)

	want := summarise(script()...)
	// the killed segment counts with what was measured: 10+20+30 ms of epochs, 3 evaluations of 5 ms
	want.TotalSeconds = Number(0.06 + 0.015 + 2.5)
	if math.Abs(float64(got.TotalSeconds-want.TotalSeconds)) > 1e-9 {
		t.Errorf("%v seconds, want %v", got.TotalSeconds, want.TotalSeconds)
	}
	got.TotalSeconds = want.TotalSeconds
	a, _ := got.JSON()
	b, _ := want.JSON()
	if !bytes.Equal(a, b) {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}

	// interrupted twice, each time with a word
	third := append(append([]engine.Event{}, script()...), start(4, 3))
	third = append(third, epoch(3, 1, 0.7, 0.7)...)
	third = append(third, done("interrupted"), start(4, 4), done("epochs"))
	if s := summarise(third...); s.TotalSeconds != 7.5 || s.EpochsRun != 4 || s.Reason != "epochs" {
		t.Errorf("%v seconds, %v epochs, %s; want 7.5, 4, epochs", s.TotalSeconds, s.EpochsRun, s.Reason)
	}
}

func TestSummaryOfAnotherMetric(t *testing.T) {
	got := summarise(start(1, 0), engine.Evaluated{Metric: "roc_auc", Val: 0.5, Test: 0.6}, done("epochs"))
	if got.TestMetric == nil || *got.TestMetric != 0.6 || got.Metric != "roc_auc" {
		t.Errorf("metric %s with test_metric %v, want roc_auc with 0.6", got.Metric, got.TestMetric)
	}
}

func TestMerge(t *testing.T) {
	var runs []Summary
	for i, test := range []float64{0.8, 0.82, 0.84} {
		r := summarise(script()...)
		r.Seed, r.TestAcc, r.EpochsRun, r.PeakMemory = uint64(i), Number(test), Number(100+i), int64(100*(3-i))
		runs = append(runs, r)
	}
	runs[2].ValAcc = Number(math.NaN())
	got := Merge(runs)
	if math.Abs(float64(got.TestAcc)-0.82) > 1e-12 || math.Abs(float64(*got.TestAccStd)-0.02) > 1e-12 {
		t.Errorf("test accuracy %v ± %v, want 0.82 ± 0.02 (dividing by n-1)", got.TestAcc, *got.TestAccStd)
	}
	if got.EpochsRun != 101 || got.ValAcc != 0.75 || got.PeakMemory != 300 || len(got.Runs) != 3 || got.Staleness[0] != 63 ||
		math.Abs(float64(got.TaskSeconds["GA"])-0.009) > 1e-12 || got.Reason != "epochs" {
		t.Errorf("merged wrongly: %+v", got)
	}
	if len(got.WeightsSHA256) != 64 || got.WeightsSHA256 == runs[0].WeightsSHA256 {
		t.Errorf("checksum of the runs is %q", got.WeightsSHA256)
	}
	runs[1].Reason = "patience"
	if got := Merge(runs); got.Reason != "mixed" {
		t.Errorf("reason %q of runs that differ", got.Reason)
	}
	if one := Merge(runs[:1]); one.Runs != nil || one.TestAccStd != nil {
		t.Errorf("one run became %+v", one)
	}
	if two := Merge([]Summary{{TestAcc: Number(math.NaN())}, {TestAcc: 1}}); two.TestAccStd.Known() {
		t.Errorf("deviation of one known value is %v", *two.TestAccStd)
	}
}

func TestSummaryReadsItsOwnJSON(t *testing.T) {
	want, _ := Merge([]Summary{summarise(script()...), summarise(script()...)}).JSON()
	var s Summary
	if err := json.Unmarshal(want, &s); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.JSON(); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWords(t *testing.T) {
	const want = `Trained    gcn on cora (2,708 vertices, 10,556 edges) in cpu mode on cpu/avx2, seed 7: 3 epochs, as asked for
Accuracy   test 70.00 % after epoch 2, the best in validation (75.00 %); train 91.00 %; loss 1.2500 at the end
Time       20 ms per epoch (median), 2.5 s in all; workers spent AV 6 ms, GA 9 ms, ∇GA 4.5 ms, WU 3 ms, eval 12 ms
Staleness  0: 21 (87.5 %), 1: 3 (12.5 %) (bound 1)
Memory     3 MiB at most
Cost       not priced: the run was started without prices
SHA-256    weights abababababababab…, predictions cdcdcdcdcdcdcdcd…
`
	if got := summarise(script()...).Words(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWordsOfRuns(t *testing.T) {
	a, b := summarise(script()...), summarise(script()...)
	b.Seed, b.TestAcc, b.Pipeline = 8, 0.72, "sync"
	got := Merge([]Summary{a, b}).Words()
	const want = `  run  seed  epochs  best    loss    train      val     test  seconds
    0     7       3     2  1.2500  91.00 %  75.00 %  70.00 %    2.5 s
    1     8       3     2  1.2500  91.00 %  75.00 %  72.00 %    2.5 s
Trained    gcn on cora (2,708 vertices, 10,556 edges) in cpu mode on cpu/avx2, 2 runs from seed 7
Accuracy   test 71.00 % ± 1.41 (sample standard deviation), val 75.00 %, train 91.00 %: means, each after its run's best validation epoch
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant it to start with\n%s", got, want)
	}
}

func TestWordsOfNumbers(t *testing.T) {
	for got, want := range map[string]string{
		seconds(0): "0 s", seconds(0.0000123): "12.3 µs", seconds(0.5): "500 ms", seconds(59): "59 s", seconds(3723): "1h2m3s",
		seconds(Number(math.NaN())): "-", size(5 << 30): "5.00 GiB", size(12): "12 bytes", thousands(-1234567): "-1,234,567",
		thousands(999): "999", thousands(1000): "1,000", percent(Number(math.NaN())): "-",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
