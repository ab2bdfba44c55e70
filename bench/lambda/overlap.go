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
	// Of runs with latency: how much longer an epoch is than without, and the shares of
	// the injected latency that are hidden by that, and by the trace.
	Added       *float64 `json:"added,omitempty"`
	HiddenTime  *float64 `json:"hidden_by_time,omitempty"`
	HiddenTrace *float64 `json:"hidden_by_trace,omitempty"`
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
	last := map[string]float64{}
	for _, x := range []struct {
		name      string
		intervals int
		flags     []string
	}{
		{"lambda", l.intervals, nil}, {"lambda async", l.intervals, []string{"--pipeline=async", "--staleness=1"}}, {"lambda", 1, nil},
	} {
		flags := append(l.onWorkers(), x.flags...)
		twin, err := l.beside(x.name, x.intervals, 0, flags...)
		if err != nil {
			return err
		}
		late, err := l.beside(x.name, x.intervals, l.latency, append(flags, fmt.Sprintf("--chaos=latency=%v", l.latency))...)
		if err != nil {
			return err
		}
		added := late.Epoch - twin.Epoch
		byTime, byTrace := 1-added/late.Injected, late.hidden()
		late.Added, late.HiddenTime, late.HiddenTrace = &added, &byTime, &byTrace
		r.Overlap = append(r.Overlap, twin, late)
		if x.intervals == 1 {
			for _, name := range []string{"lambda", "lambda async"} {
				r.least("intervals", fmt.Sprintf("epoch of 1 interval / epoch of %s, %d intervals", name, l.intervals), late.Epoch/last[name], 1, "both with the latency")
			}
			break
		}
		last[x.name] = late.Epoch
		what := fmt.Sprintf("%s, %d intervals: share of the injected latency that is hidden, by ", x.name, x.intervals)
		r.least("latency", what+"time", byTime, mostHidden, fmt.Sprintf("%.2f s injected an epoch, which takes %.2f s longer", late.Injected, added))
		r.least("latency", what+"the trace", byTrace, mostHidden, fmt.Sprintf("%.2f s in which nothing else is under way", late.Exposed))
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
