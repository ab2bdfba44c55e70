package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"dorylus/bench/load"
)

// A goal is a number with a bar.
type goal struct {
	ID    string  `json:"id"`
	What  string  `json:"what"`
	Value float64 `json:"value"` // of what holds or does not: 1 or 0
	Bar   float64 `json:"bar"`
	Most  bool    `json:"at_most,omitempty"` // the bar is an upper one
	Pass  bool    `json:"pass"`
	Note  string  `json:"note,omitempty"`
}

// bits are the weights that both modes have ended with.
type bits struct {
	What   string `json:"what"`
	CPU    string `json:"cpu_weights_sha256"`
	Lambda string `json:"lambda_weights_sha256"`
}

// graph is what was trained on.
type graph struct {
	Name     string `json:"name"`
	Vertices int    `json:"vertices"`
	Edges    int64  `json:"edges"`
}

type report struct {
	Made    string       `json:"made"`
	Version string       `json:"version"`
	Machine load.Machine `json:"machine"`
	Graph   graph        `json:"graph"`
	Threads int          `json:"threads"` // of the graph server
	Workers int          `json:"workers"`
	Traffic []traffic    `json:"traffic"`
	Overlap []overlap    `json:"overlap"`
	Bits    []bits       `json:"bits"`
	Tuner   []settled    `json:"autotuner"`
	Compare []modes      `json:"compare"`
	Goals   []goal       `json:"goals"`
	Skipped []string     `json:"skipped,omitempty"`
	Seconds float64      `json:"seconds"`
}

// least records a goal that value should reach.
func (r *report) least(id, what string, value, bar float64, note string) {
	r.Goals = append(r.Goals, goal{ID: id, What: what, Value: value, Bar: bar, Pass: value >= bar, Note: note})
}

// most records a goal that value should not pass.
func (r *report) most(id, what string, value, bar float64, note string) {
	r.Goals = append(r.Goals, goal{ID: id, What: what, Value: value, Bar: bar, Most: true, Pass: value <= bar, Note: note})
}

// holds records something that should be so.
func (r *report) holds(id, what string, is bool, note string) {
	value := 0.0
	if is {
		value = 1
	}
	r.least(id, what, value, 1, note)
}

// missed counts the goals that were not reached.
func (r *report) missed() int {
	n := 0
	for _, g := range r.Goals {
		if !g.Pass {
			n++
		}
	}
	return n
}

func (r *report) print(w io.Writer) {
	m := &r.Machine
	fmt.Fprintf(w, "%s, %d processors, %s, version %s, %.0f s\n", m.CPU, m.Processors, r.Made, r.Version, r.Seconds)
	if m.Shared != nil {
		fmt.Fprintf(w, "Programs other than these have used %.0f %% of the processors, %.0f %% in the worst run.\n", 100*m.BusyElsewhere, 100*m.BusyMost)
	}
	fmt.Fprintf(w, "%s: %d vertices, %d edges; %d threads, %d workers of the local service\n\n", r.Graph.Name, r.Graph.Vertices, r.Graph.Edges, r.Threads, r.Workers)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range r.Traffic {
		fmt.Fprintf(t, "bytes of an epoch, input dropout %v\tMB\tof naive\n", x.InputDropout)
		line := func(what string, n int64) {
			fmt.Fprintf(t, "  %s\t%.1f\t%.1f %%\n", what, float64(n)/1e6, 100*float64(n)/float64(x.Naive))
		}
		line("naive", x.Naive)
		for _, cause := range x.ordered() {
			line("saved by "+cause, x.Saved[cause])
		}
		line("planned", x.Planned)
		line("saved by codec, heads taken off", x.Codec)
		line("counted on the wire", x.Counted)
		fmt.Fprintf(t, "  times less\t%.1f\t\n  once a run: shards\t%.1f\t\n", x.Factor, float64(x.Shards)/1e6)
	}
	t.Flush()
	fmt.Fprintln(w)
	fmt.Fprintln(t, "seconds of an epoch\tpipeline\tintervals\tlatency\tin all\tgraph only\ttensor only\tboth\tneither\tinjected\tof it behind graph tasks\texposed\thidden\tadded\thidden")
	for _, x := range r.Overlap {
		latency, trace, added := "-", "-\t-\t-\t-", "-\t-"
		if x.HiddenTrace != nil {
			latency = fmt.Sprintf("%.0f ms", x.LatencyMS)
			trace = fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.0f %%", x.Injected, x.BehindGraph, x.Exposed, 100**x.HiddenTrace)
		}
		if x.Added != nil {
			added = fmt.Sprintf("%.2f\t%.0f %%", *x.Added, 100**x.HiddenTime)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%s\n", x.Name, x.Pipeline, x.Intervals, latency, x.Epoch, x.Graph, x.Tensor, x.Both, x.None, trace, added)
	}
	t.Flush()
	for _, x := range r.Compare {
		fmt.Fprintf(w, "\ncompare on %s %v\n", x.Data, x.Flags)
		for _, line := range x.Table {
			fmt.Fprintln(w, line)
		}
	}
	fmt.Fprintln(w)
	fmt.Fprintln(t, "goal\twhat\tmeasured\tbar\t\tnote")
	for _, g := range r.Goals {
		sign, verdict := ">=", "pass"
		if g.Most {
			sign = "<="
		}
		if !g.Pass {
			verdict = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%.3g\t%s %.3g\t%s\t%s\n", g.ID, g.What, g.Value, sign, g.Bar, verdict, g.Note)
	}
	t.Flush()
	for _, s := range r.Skipped {
		fmt.Fprintln(w, "SKIPPED", s)
	}
}
