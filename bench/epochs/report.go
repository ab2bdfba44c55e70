//go:build cgo && amd64 && linux

package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"dorylus/bench/load"
)

// report is what the program found.
type report struct {
	Made     string            `json:"made"`
	Seconds  float64           `json:"seconds"`
	Machine  load.Machine      `json:"machine"`
	Threads  int               `json:"threads"`
	Rounds   int               `json:"rounds"`
	Versions map[string]string `json:"versions"`
	Absent   map[string]string `json:"absent,omitempty"` // peers that could not run, and why
	Ceilings *ceilings         `json:"ceilings"`
	Works    []*result         `json:"works"`
}

// result is a work, done by all.
type result struct {
	Work   string            `json:"work"`
	Data   string            `json:"data"`
	Flags  string            `json:"flags"`
	Whole  bool              `json:"whole_process"`
	By     map[string]*row   `json:"by"`
	Failed map[string]string `json:"failed,omitempty"`
	Goals  []goal            `json:"goals"`
}

// row is what one contestant took, over the rounds.
type row struct {
	Epoch  spread `json:"epoch_seconds"`
	Whole  spread `json:"process_seconds"`
	CPU    spread `json:"process_cpu_seconds"`
	Memory spread `json:"peak_memory_bytes"`
	// Acc and Loss are those of the last round. They are of runs of different lengths where
	// slow peers are given fewer epochs.
	Acc  float64 `json:"test_acc"`
	Loss float64 `json:"loss"`
	// Of the engine: the roofline of an epoch in seconds, and its share of the epoch.
	Floor *floor   `json:"roofline_seconds,omitempty"`
	Share *float64 `json:"roofline_share,omitempty"`
	Note  string   `json:"note,omitempty"`
}

// goal is a ratio that is wanted.
type goal struct {
	What  string `json:"what"`
	Ratio spread `json:"ratio"`
	Want  string `json:"want"`
	Met   bool   `json:"met"`
}

// add keeps the outcomes of one contestant.
func (r *result) add(c string, out []outcome) {
	pick := func(f func(o *outcome) float64) spread {
		var x []float64
		for i := range out {
			x = append(x, f(&out[i]))
		}
		return spreadOf(x)
	}
	last := out[len(out)-1]
	r.By[c] = &row{
		Epoch: pick(func(o *outcome) float64 { return o.Epoch }), Whole: pick(func(o *outcome) float64 { return o.Whole }),
		CPU: pick(func(o *outcome) float64 { return o.CPU }), Memory: pick(func(o *outcome) float64 { return o.Memory }),
		Acc: last.Acc, Loss: last.Loss, Note: last.Note,
	}
}

// judge compares the engine with each peer, round by round.
func (r *result) judge(w *work, all map[string][]outcome) {
	time := func(o outcome) float64 { return o.Epoch }
	what := "epoch"
	if w.Whole {
		time, what = func(o outcome) float64 { return o.Whole }, "process"
	}
	of := func(c string, f func(outcome) float64) (x []float64) {
		for _, o := range all[c] {
			x = append(x, f(o))
		}
		return x
	}
	memory := func(o outcome) float64 { return o.Memory }
	leaner := ""
	for _, peer := range []string{pyg, dgl} {
		if len(all[peer]) == 0 {
			continue
		}
		if leaner == "" || r.By[peer].Memory.Median < r.By[leaner].Memory.Median {
			leaner = peer
		}
		for _, mine := range []string{ours, same} {
			if len(all[mine]) == 0 {
				continue
			}
			g := goal{What: fmt.Sprintf("%s time, %s / %s", what, peer, mine), Ratio: spreadOf(ratios(of(peer, time), of(mine, time)))}
			if x := w.Goals[peer]; x > 0 && mine == ours {
				g.Want, g.Met = fmt.Sprintf("at least %g", x), g.Ratio.Median >= x
			}
			r.Goals = append(r.Goals, g)
		}
	}
	if leaner != "" && len(all[ours]) > 0 {
		g := goal{What: "peak memory, ours / " + leaner, Ratio: spreadOf(ratios(of(ours, memory), of(leaner, memory))), Want: fmt.Sprintf("at most %g", maxMemory)}
		g.Met = g.Ratio.Median <= maxMemory
		r.Goals = append(r.Goals, g)
	}
}

// missed counts goals.
func (r *report) missed() (missed, all int) {
	for _, w := range r.Works {
		for _, g := range w.Goals {
			if g.Want != "" {
				all++
				if !g.Met {
					missed++
				}
			}
		}
	}
	return missed, all
}

// print writes the report as text.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d threads, %d rounds", r.Machine.CPU, r.Threads, r.Rounds)
	if r.Machine.Shared != nil {
		fmt.Fprintf(w, "; others used %.0f %% of the processors", 100*r.Machine.BusyElsewhere)
	}
	fmt.Fprintln(w)
	for _, c := range contestants {
		if v := r.Versions[c]; v != "" {
			fmt.Fprintf(w, "%-5s %s\n", c, v)
		}
		if why := r.Absent[c]; why != "" {
			fmt.Fprintf(w, "%-5s did not run: %s\n", c, why)
		}
	}
	for _, x := range r.Works {
		fmt.Fprintf(w, "\n%s: %s, %s\n", x.Work, x.Data, x.Flags)
		fmt.Fprintf(w, "  %-5s %22s %22s %9s %9s %9s\n", "", "s an epoch", "s the process", "CPU s", "peak MB", "roofline")
		for _, c := range contestants {
			if why := x.Failed[c]; why != "" {
				fmt.Fprintf(w, "  %-5s failed: %s\n", c, why)
			}
			if y := x.By[c]; y != nil {
				share := "-"
				if y.Share != nil {
					share = fmt.Sprintf("%.0f %%", 100**y.Share)
				}
				fmt.Fprintf(w, "  %-5s %22s %22s %9s %9.0f %9s\n", c, y.Epoch, y.Whole, short(y.CPU.Median), y.Memory.Median/1e6, share)
			}
		}
		for _, g := range x.Goals {
			verdict := ""
			if g.Want != "" {
				verdict = fmt.Sprintf("  goal %s: %s", g.Want, map[bool]string{true: "met", false: "MISSED"}[g.Met])
			}
			fmt.Fprintf(w, "  %-36s %s%s\n", g.What, g.Ratio, verdict)
		}
	}
}

// String is "1.25 (1.20-1.31)".
func (s spread) String() string {
	if math.IsNaN(s.Median) {
		return "-"
	}
	if s.Least == s.Most {
		return short(s.Median)
	}
	return fmt.Sprintf("%s (%s-%s)", short(s.Median), short(s.Least), short(s.Most))
}

// short is three digits of x.
func short(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	text := fmt.Sprintf("%#.3g", x)
	return strings.TrimSuffix(text, ".")
}
