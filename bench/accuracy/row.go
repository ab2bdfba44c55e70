package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// row is a gate's outcome. Scores are in per cent of the metric.
type row struct {
	Name    string   `json:"name"`
	Data    string   `json:"data"`
	Splits  string   `json:"splits,omitempty"`
	Prepare []string `json:"prepare_flags,omitempty"`
	Flags   []string `json:"train_flags,omitempty"`
	Metric  string   `json:"metric"`
	After   string   `json:"judged_after"` // lastEpoch or bestEpoch
	Runs    int      `json:"runs"`
	Last    scores   `json:"last_epoch"`
	Best    scores   `json:"best_validation_epoch"`

	Want      float64 `json:"want_percent"`
	Band      float64 `json:"band_points"`
	Control   bool    `json:"must_stay_below,omitempty"`
	Collapsed []int   `json:"collapsed_runs,omitempty"` // their numbers, from 0
	Above     bool    `json:"above_band,omitempty"`
	Pass      bool    `json:"pass"`
	Source    string  `json:"source"`

	Seconds float64 `json:"seconds"` // reading and evaluating after every epoch included
	Made    origin  `json:"made"`
}

// The two epochs after which scores are taken.
const (
	lastEpoch = "last epoch"
	bestEpoch = "best validation"
)

// origin says what a row was measured with.
type origin struct {
	Date    string `json:"date"`
	Version string `json:"version"`
	CPU     string `json:"cpu"`
	Threads int    `json:"threads"`
	Device  string `json:"device"`
}

// scores are those of a gate's runs, with their summary. Std divides by n-1, as the
// engine's own does; it is 0 of one run.
type scores struct {
	Mean   float64   `json:"mean"`
	Median float64   `json:"median"`
	Std    float64   `json:"std"`
	Min    float64   `json:"min"`
	Runs   []float64 `json:"runs"`
}

// sumUp summarizes the scores of at least one run.
func sumUp(runs []float64) scores {
	n := len(runs)
	sorted := slices.Sorted(slices.Values(runs))
	s := scores{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Runs: runs}
	for _, x := range runs {
		s.Mean += x / float64(n)
	}
	for _, x := range runs {
		s.Std += (x - s.Mean) * (x - s.Mean) / float64(max(n-1, 1))
	}
	s.Mean, s.Median, s.Std = round(s.Mean), round(s.Median), round(math.Sqrt(s.Std))
	return s
}

func round(x float64) float64 { return math.Round(1e4*x) / 1e4 }

// judge makes a gate's row. A gate passes if both mean and median reach what it asks
// for and no run collapsed; one with a band, if the mean is not above the band either,
// for then the settings or splits are not those of the reference, or labels leak; a
// control, if its mean stays below.
func judge(g gate, o outcome, took time.Duration) row {
	r := row{
		Name: g.name, Data: g.data, Splits: g.splits, Prepare: g.prepare, Flags: g.flags, Metric: g.metric, After: bestEpoch, Runs: g.runs,
		Last: sumUp(o.last), Best: sumUp(o.best), Want: g.want, Band: g.band, Control: g.below, Source: g.source, Seconds: took.Seconds(),
	}
	if r.Data == "" {
		r.Data = "cora (built in)"
	}
	if g.last {
		r.After = lastEpoch
	}
	s := r.judged()
	if g.below {
		r.Pass = s.Mean < g.want
		return r
	}
	for i, x := range s.Runs {
		if !(x >= g.want-collapse) {
			r.Collapsed = append(r.Collapsed, i)
		}
	}
	r.Above = g.band > 0 && s.Mean > g.want+g.band
	r.Pass = s.Mean >= g.want-g.band && s.Median >= g.want-g.band && len(r.Collapsed) == 0 && !r.Above
	return r
}

// judged are the scores that the gate is about.
func (r *row) judged() *scores {
	if r.After == lastEpoch {
		return &r.Last
	}
	return &r.Best
}

// verdict is what the table says of a row.
func (r *row) verdict() string {
	switch {
	case len(r.Collapsed) > 0:
		return fmt.Sprintf("MISSED: collapsed runs %s", strings.Trim(fmt.Sprint(r.Collapsed), "[]"))
	case r.Above:
		return "MISSED: too good"
	case !r.Pass:
		return "MISSED"
	}
	return "pass"
}

// limit is what the table says of a gate's bar.
func (r *row) limit() string {
	if r.Control {
		return fmt.Sprintf("< %.2f", r.Want)
	}
	if r.Band > 0 {
		return fmt.Sprintf("%.2f ± %.1f", r.Want, r.Band)
	}
	return fmt.Sprintf("≥ %.2f", r.Want)
}
