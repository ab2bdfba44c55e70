//go:build cgo && amd64 && linux

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A row is one kernel at one width. Bytes are those of the gathered rows with
// their padding to 64 bytes; the indices are not counted.
type row struct {
	Graph     string  `json:"graph"`
	Width     int     `json:"width"`
	Kernel    string  `json:"kernel"`
	NsPerEdge float64 `json:"ns_per_edge"` // CPU time of a worker, both at work
	GBs       float64 `json:"gb_per_s"`    // of all workers
	Ceiling   float64 `json:"ceiling_gb_per_s,omitempty"`
	Probe     string  `json:"ceiling,omitempty"`
	OverNaive float64 `json:"times_naive,omitempty"`
}

// A goal is a ratio with a bar.
type goal struct {
	ID    string  `json:"id"`
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Bar   float64 `json:"bar"`
	Most  bool    `json:"at_most,omitempty"` // the bar is an upper one
	Pass  bool    `json:"pass"`
	Note  string  `json:"note,omitempty"`
}

type report struct {
	Host     string  `json:"host"`
	Quick    bool    `json:"quick,omitempty"`
	Vertices int     `json:"vertices"`
	Edges    int     `json:"edges"`
	Rows     []row   `json:"rows"`
	Goals    []goal  `json:"goals"`
	Seconds  float64 `json:"seconds"`
}

// least records a goal that value should reach.
func (r *report) least(id, what string, value, bar float64, note string) {
	r.Goals = append(r.Goals, goal{ID: id, What: what, Value: value, Bar: bar, Pass: value >= bar, Note: note})
}

// most records a goal that value should not pass.
func (r *report) most(id, what string, value, bar float64, note string) {
	r.Goals = append(r.Goals, goal{ID: id, What: what, Value: value, Bar: bar, Most: true, Pass: value <= bar, Note: note})
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n%d vertices, %d edges, 2 workers, %.0f s\n\n", r.Host, r.Vertices, r.Edges, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "graph\twidth\tkernel\tns/edge\tGB/s\tceiling GB/s\tof it\tx naive\tceiling")
	for _, x := range r.Rows {
		ceiling, share, times := "-", "-", "-"
		if x.Ceiling > 0 {
			ceiling, share = fmt.Sprintf("%.1f", x.Ceiling), fmt.Sprintf("%.0f%%", 100*x.GBs/x.Ceiling)
		}
		if x.OverNaive > 0 {
			times = fmt.Sprintf("%.2f", x.OverNaive)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%.2f\t%.1f\t%s\t%s\t%s\t%s\n", x.Graph, x.Width, x.Kernel, x.NsPerEdge, x.GBs, ceiling, share, times, x.Probe)
	}
	t.Flush()
	fmt.Fprintln(w)
	if r.Quick {
		fmt.Fprintln(w, "Quick run: the graph fits the caches, so the goals below say nothing.")
	}
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
}
