package main

import (
	"fmt"
	"slices"
	"time"
)

// overlap is how graph and tensor tasks have run beside each other in a run. Times are
// seconds of an epoch, the first one left out.
type overlap struct {
	Name      string  `json:"name"`
	Pipeline  string  `json:"pipeline"`
	Intervals int     `json:"intervals"`
	LatencyMS float64 `json:"latency_ms"` // that is injected into each tensor task
	shares
	// Of runs with latency: the share of it that is hidden, by the trace; and where the same
	// was run without, how much longer an epoch is, and the share that is hidden by that.
	HiddenTrace *float64 `json:"hidden_by_trace,omitempty"`
	Added       *float64 `json:"added,omitempty"`
	HiddenTime  *float64 `json:"hidden_by_time,omitempty"`
}

// mostHidden is the share of the latency that a pipeline has to hide.
const mostHidden = 0.5

// overlap trains without and with latency, in intervals and in one.
func (r *report) overlap(l *lab) error {
	cpu, err := l.beside("cpu", l.intervals, 0, "--mode=cpu")
	if err != nil {
		return err
	}
	r.Overlap = append(r.Overlap, cpu)
	late := []string{fmt.Sprintf("--chaos=latency=%v", l.latency)}
	last := map[string]float64{}
	for _, x := range []struct {
		name  string
		flags []string
	}{{"lambda", nil}, {"lambda async", []string{"--pipeline=async", "--staleness=1"}}} {
		flags := append(l.onWorkers(), x.flags...)
		twin, err := l.beside(x.name, l.intervals, 0, flags...)
		if err != nil {
			return err
		}
		o, err := l.beside(x.name, l.intervals, l.latency, slices.Concat(flags, late)...)
		if err != nil {
			return err
		}
		added := o.Epoch - twin.Epoch
		byTime := 1 - added/o.Injected
		o.Added, o.HiddenTime = &added, &byTime
		r.Overlap = append(r.Overlap, twin, o)
		last[x.name] = o.Epoch
		what := fmt.Sprintf("%s, %d intervals: share of the injected latency that is hidden, by ", x.name, l.intervals)
		r.least("latency", what+"time", byTime, mostHidden, fmt.Sprintf("%.2f s injected an epoch, which takes %.2f s longer", o.Injected, added))
		r.least("latency", what+"the trace", *o.HiddenTrace, mostHidden, fmt.Sprintf("%.2f s in which nothing else is under way", o.Exposed))
	}
	one, err := l.beside("lambda", 1, l.latency, slices.Concat(l.onWorkers(), late)...)
	if err != nil {
		return err
	}
	r.Overlap = append(r.Overlap, one)
	for _, name := range []string{"lambda", "lambda async"} {
		r.least("intervals", fmt.Sprintf("epoch of 1 interval / epoch of %s, %d intervals", name, l.intervals), one.Epoch/last[name], 1, "both with the latency")
	}
	return nil
}

// beside trains and divides the time of an epoch.
func (l *lab) beside(name string, intervals int, latency time.Duration, flags ...string) (overlap, error) {
	o := overlap{Name: name, Pipeline: "sync", Intervals: intervals, LatencyMS: float64(latency) / 1e6}
	if slices.Contains(flags, "--pipeline=async") {
		o.Pipeline = "async"
	}
	t, err := l.train(l.epochs, slices.Concat(flags, onGraph(intervals, 0.5))...)
	if err != nil {
		return o, err
	}
	spans, w, err := readTrace(t.folder)
	if err != nil {
		return o, err
	}
	o.shares = divide(spans, w, latency, l.workers)
	if latency > 0 {
		share := o.hidden()
		o.HiddenTrace = &share
	}
	return o, nil
}

// onGraph are the flags that runs in all modes have in common.
func onGraph(intervals int, inputDropout float64) []string {
	return []string{fmt.Sprintf("--intervals=%d", intervals), fmt.Sprintf("--input-dropout=%v", inputDropout)}
}

// bits compares what runs in both modes have made of the same weights.
func (r *report) bits(l *lab) error {
	for _, dropout := range []float64{0.5, 0} {
		flags := onGraph(l.intervals, dropout)
		cpu, err := l.train(l.epochs, append([]string{"--mode=cpu"}, flags...)...)
		if err != nil {
			return err
		}
		workers, err := l.train(l.epochs, slices.Concat(l.onWorkers(), flags)...)
		if err != nil {
			return err
		}
		r.sameBits(fmt.Sprintf("%s, input dropout %v", cpu.summary.Dataset, dropout), cpu.summary, workers.summary)
		r.Graph = graph{cpu.summary.Dataset, cpu.summary.Vertices, cpu.summary.Edges}
		r.Version, r.Threads, r.Machine.Device = workers.summary.Version, workers.summary.Threads, workers.summary.Device
	}
	return nil
}

// sameBits notes the weights of two runs.
func (r *report) sameBits(what string, cpu, workers summary) {
	r.Bits = append(r.Bits, bits{what, cpu.Weights, workers.Weights})
	r.holds("bits", what+": cpu and lambda have the same weights", cpu.Weights != "" && cpu.Weights == workers.Weights, short(cpu.Weights)+" and "+short(workers.Weights))
}

func short(sha string) string { return sha[:min(12, len(sha))] }
