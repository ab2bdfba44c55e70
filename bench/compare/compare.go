// Package compare sets trainings of the same model on the same data, one per mode,
// beside each other: one table, one JSON object, one picture.
//
// All figures are those of the runs' summaries and events. What is added here is the
// judgement: whether a mode reached the target, and its value relative to the first.
package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"dorylus/engine"
	"dorylus/engine/sink"
)

// Comparison is the modes that have been trained so far, the first being the one that
// others are measured by.
type Comparison struct {
	// Target is the validation metric that ends a run, 0 to 1; 0: there is none.
	Target float64 `json:"-"`
	// Runs is how often each mode was to be trained.
	Runs  int    `json:"-"`
	Modes []Mode `json:"modes"`
}

// Mode is what one mode's training gave: its summary, as training alone gives it, but
// for a Value that would compare different things, which is null.
type Mode struct {
	sink.Summary
	// Name is the mode, with its pipeline if that was asked for: "cpu:async".
	Name string `json:"name"`
	// Reached says whether every run reached the target; nil if there was none.
	Reached *bool `json:"target_reached,omitempty"`
	// Relative is Value divided by the first mode's; null if either is not known.
	Relative sink.Number `json:"value_relative"`
	// Why says why there is no Value.
	Why string `json:"value_note,omitempty"`
	// Curves has one curve per run.
	Curves []Curve `json:"-"`

	// NotRun says why the mode was not run; "" if it was. There is nothing else then but
	// Name, Mode and Pipeline.
	NotRun string `json:"-"`

	short bool // a run has not come to the target, or to its end
}

// Skip adds a mode that cannot be run here.
func (c *Comparison) Skip(name, mode, pipeline, why string) {
	nan := sink.Number(math.NaN())
	m := Mode{Name: name, NotRun: why, Relative: nan}
	m.Mode, m.Pipeline = mode, pipeline
	for _, x := range []*sink.Number{&m.EpochsRun, &m.BestEpoch, &m.Loss, &m.TrainAcc, &m.ValAcc, &m.TestAcc, &m.EpochSeconds, &m.TotalSeconds, &m.Value} {
		*x = nan
	}
	c.Modes = append(c.Modes, m)
}

// Ran is c without the modes that were not run.
func (c *Comparison) Ran() *Comparison {
	ran := &Comparison{Target: c.Target, Runs: c.Runs}
	for _, m := range c.Modes {
		if m.NotRun == "" {
			ran.Modes = append(ran.Modes, m)
		}
	}
	return ran
}

// MarshalJSON implements json.Marshaler.
func (m Mode) MarshalJSON() ([]byte, error) {
	if m.NotRun != "" {
		return json.Marshal(map[string]string{"name": m.Name, "mode": m.Mode, "pipeline": m.Pipeline, "not_run": m.NotRun})
	}
	type plain Mode
	return json.Marshal(plain(m))
}

// Add takes the summary of a mode's runs, merged, and their curves.
func (c *Comparison) Add(name string, s sink.Summary, curves []Curve) {
	m := Mode{Summary: s.Timed(), Name: name, Curves: curves, Relative: sink.Number(math.NaN())}
	if s.Emulated {
		m.Curves = nil // over seconds and dollars
	}
	if c.Target > 0 {
		reached := len(m.runs()) >= c.Runs && m.count("target") == len(m.runs())
		m.Reached = &reached
	}
	m.Why = c.whyShort(&m)
	m.short = m.Why != ""
	if !m.short && !m.Value.Known() {
		m.Why = "its cost is not known: " + lastPart(m.CostNote)
	}
	if s.Emulated && !m.short {
		m.Why = engine.EmulatedNote
	}
	if m.short {
		m.Value = sink.Number(math.NaN())
	}
	first := m.Value
	if len(c.Modes) > 0 { // relative to a mode that was not run there is nothing
		first = c.Modes[0].Value
	}
	if m.Value.Known() && first.Known() {
		m.Relative = m.Value / first
	}
	c.Modes = append(c.Modes, m)
}

// runs are the single runs.
func (m *Mode) runs() []sink.Summary {
	if len(m.Runs) > 0 {
		return m.Runs
	}
	return []sink.Summary{m.Summary}
}

// count is how many runs ended for a reason.
func (m *Mode) count(reason string) int {
	n := 0
	for _, r := range m.runs() {
		if r.Reason == reason {
			n++
		}
	}
	return n
}

// whyShort says why time and dollars of m are not those of a whole training; "" if they
// are.
func (c *Comparison) whyShort(m *Mode) string {
	runs := m.runs()
	switch {
	case m.count("failed") > 0:
		return "it failed"
	case m.count("interrupted") > 0:
		return "it was interrupted"
	case m.count("max-cost") > 0:
		return "--max-cost stopped it"
	case m.count("unfinished") > 0:
		return "it did not end by itself"
	case len(runs) < c.Runs:
		return fmt.Sprintf("only %d of %d runs were made", len(runs), c.Runs)
	case c.Target > 0 && len(runs) == 1 && m.count("target") == 0:
		return fmt.Sprintf("it missed the target: the best in validation was %s after %s of %s epochs",
			percent(m.best()), plain(m.BestEpoch), plain(m.EpochsRun))
	case c.Target > 0 && m.count("target") < len(runs):
		return fmt.Sprintf("%d of %d runs missed the target; the mean of their best in validation is %s",
			len(runs)-m.count("target"), len(runs), percent(m.best()))
	}
	return ""
}

// lastPart is what a cost note says last, which is what is missing.
func lastPart(note string) string {
	parts := strings.Split(note, "; ")
	return strings.TrimPrefix(parts[len(parts)-1], "the total is not known: ")
}

// best is the best validation metric.
func (m *Mode) best() sink.Number {
	if m.ValMetric != nil {
		return *m.ValMetric
	}
	return m.ValAcc
}

// JSON is c as indented JSON, {"modes": [...]}, with a line break at the end.
func (c *Comparison) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(c, "", "  ")
	return append(data, '\n'), err
}
