package main

import (
	"fmt"
	"io"
	"slices"
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
	Bits    []bitsRow    `json:"bits"`
	Async   []asyncRow   `json:"async"`
	Graph   graph        `json:"graph"` // of Rows and Scale
	Rows    []rowsRow    `json:"ghost_rows"`
	Scale   []scaleRow   `json:"scale"`
	Goals   []goal       `json:"goals"`
	Skipped []string     `json:"skipped,omitempty"`
	Again   []string     `json:"lost_and_made_again,omitempty"` // runs that have lost a server, and why
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
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, print := range []func(io.Writer){r.printBits, r.printAsync, r.printRows, r.printScale} {
		print(t)
		t.Flush()
	}
	fmt.Fprintln(w)
	for _, s := range r.Again {
		fmt.Fprintf(w, "made again: %s\n", s)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "skipped %s\n", s)
	}
	for _, g := range r.Goals {
		verdict, sign := "pass", "≥"
		if !g.Pass {
			verdict = "MISSED"
		}
		if g.Most {
			sign = "≤"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.4g\t%s %.4g\t%s\n", verdict, g.ID, g.What, g.Value, sign, g.Bar, g.Note)
	}
	t.Flush()
}

// printBits has a line for each reference, and one for each run that differs from it.
func (r *report) printBits(w io.Writer) {
	if len(r.Bits) == 0 {
		return
	}
	fmt.Fprintln(w, "\nsame bits as one process\truns\tof them the same\tservers (graph x param)\tweights")
	for i := 0; i < len(r.Bits); {
		what, same, sets := r.Bits[i].what(), 0, []string{}
		first := i
		for ; i < len(r.Bits) && r.Bits[i].what() == what; i++ {
			if r.Bits[i].Same {
				same++
			}
			sets = append(sets, r.Bits[i].sets())
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%.12s…\n", what, i-first, same, joined(sets), r.Bits[first].Want.Weights)
	}
}

func joined(sets []string) string {
	text := ""
	for i, s := range slices.Compact(sets) {
		if i > 0 {
			text += " "
		}
		text += s
	}
	return text
}
