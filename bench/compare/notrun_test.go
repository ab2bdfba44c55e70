package compare

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
)

// emulated makes the events of a run those of a run on the emulated device.
func emulated(events []engine.Event) []engine.Event {
	start := events[0].(engine.RunStart)
	start.Mode, start.Rates = "gpu", nil
	events[0] = start
	used := engine.GPUUsed{GPUs: []engine.GPU{{Name: "cuda:0", What: "Emulated", Limit: 1 << 20, Total: 1 << 21}}, Emulated: true, Precision: "fp32"}
	return slices.Insert(events, 1, engine.Event(used))
}

// A mode that cannot be run is named with the reason; the others are compared.
func TestModesThatWereNotRun(t *testing.T) {
	c := &Comparison{Runs: 1}
	add(c, "cpu", run("cpu", 7, 0.5, "epochs", 0.5, 0.6))
	c.Skip("gpu:async", "gpu", "async", "there is no GPU; buy one")
	add(c, "lambda", run("lambda", 7, 0.25, "epochs", 0.5, 0.6))
	text := c.Text()
	check(t, lines(text, "accuracy, test", "not run"), "accuracy, test at best validation   61.00 %        61.00 %\ngpu:async: not run: there is no GPU; buy one\n")
	if !c.Modes[2].Relative.Known() || strings.Contains(text, "No relative values") {
		t.Errorf("lambda is not set beside cpu:\n%s", text)
	}
	data, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Modes []map[string]any }
	if err := json.Unmarshal(data, &got); err != nil || len(got.Modes) != 3 {
		t.Fatalf("%v\n%s", err, data)
	}
	m := got.Modes[1]
	if len(m) != 4 || m["name"] != "gpu:async" || m["mode"] != "gpu" || m["pipeline"] != "async" || m["not_run"] != "there is no GPU; buy one" {
		t.Errorf("modes[1] is %v", m)
	}
	if got.Modes[2]["name"] != "lambda" || got.Modes[2]["not_run"] != nil {
		t.Errorf("modes[2] is %v", got.Modes[2])
	}
	if _, err := c.Plot("svg", "validation accuracy"); err != nil {
		t.Error(err)
	}

	c = &Comparison{Runs: 1}
	c.Skip("gpu", "gpu", "sync", "there is no GPU")
	check(t, c.Text(), "gpu: not run: there is no GPU\n")
	add(c, "cpu", run("cpu", 7, 0.5, "epochs", 0.5, 0.6))
	if text := c.Text(); !strings.Contains(text, "No relative values, since the first mode, gpu, was not run.") || c.Modes[1].Relative.Known() {
		t.Errorf("values relative to a mode that was not run:\n%s", text)
	}
}

// Of a run on an emulated device accuracy is compared, but neither time nor dollars.
func TestEmulatedModesHaveNoTimes(t *testing.T) {
	c := &Comparison{Target: 0.9, Runs: 1}
	add(c, "cpu", run("cpu", 7, 0.5, "epochs", 0.5, 0.6))
	add(c, "gpu", emulated(run("gpu", 7, 0.123, "epochs", 0.5, 0.6)))
	text := c.Text()
	check(t, lines(text, "accuracy, test", "seconds to", "epochs to", "median", "workers' time", "GA", "total ", "value, 1"), `accuracy, test at best validation   61.00 %   61.00 %
epochs to the target                    > 2       > 2
seconds to the target              > 1.00 s         -
time per epoch, median               500 ms         -
workers' time                        875 ms         -
  GA                                 250 ms         -
  total                               0.001         -
value, 1/(seconds·dollars)                -         -
`)
	c = &Comparison{Runs: 1}
	add(c, "cpu", run("cpu", 7, 0.5, "epochs", 0.5, 0.6))
	add(c, "gpu", emulated(run("gpu", 7, 0.123, "epochs", 0.5, 0.6)))
	if m := c.Modes[1]; m.Why != engine.EmulatedNote || m.Value.Known() || m.EpochSeconds.Known() || m.Relative.Known() || m.Curves != nil {
		t.Errorf("%+v", m)
	}
	data, err := c.JSON()
	if err != nil || strings.Contains(string(data), "0.123") || strings.Contains(string(data), "0.246") {
		t.Errorf("%v: times of the emulated device are in the JSON:\n%s", err, data)
	}
}
