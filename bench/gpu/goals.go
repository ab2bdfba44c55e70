package main

import (
	"fmt"
	"strings"
)

// goal is a number of the plan. Met is null where it was not judged; why says so.
type goal struct {
	What  string  `json:"what"`
	Value float64 `json:"value,omitempty"`
	Goal  string  `json:"goal"`
	Met   *bool   `json:"met"`
	Why   string  `json:"why,omitempty"`
}

// reddit is as large as the graph for which the goal of an epoch is set.
func (e epoch) reddit() bool { return e.Vertices >= 230_000 && e.Edges >= 110_000_000 }

// cached is the epoch that goals are about: a GCN of width 128, fp32, synchronous.
const cached = "gcn-fp32-sync"

func (r *result) judge() {
	least := func(what string, value, least float64, text string) {
		met := value >= least
		r.Goals = append(r.Goals, goal{What: what, Value: value, Goal: text, Met: &met})
	}
	open := func(what, text, why string) {
		r.Goals = append(r.Goals, goal{What: what, Goal: text, Why: why})
	}
	const spmm, over = "SpMM, times as fast as cuSPARSE ALG2 (preprocessed)", "Reddit-sized GCN epoch, times as fast as PyG"
	const span = "Reddit-sized GCN epoch, ms"
	if r.Emulated {
		open(spmm, ">= 1", "emulated device")
		open(span, "<= 17", "emulated device")
		open(over, ">= 3", "emulated device")
		return
	}
	gathers := 0
	for _, b := range r.Beside {
		if b.Precision != "fp32" {
			continue
		}
		gathers++
		if b.CuSPARSE > 0 {
			least(fmt.Sprintf("%s, width %d", spmm, b.Width), b.OverCuSPARSE, 1, ">= 1")
		} else {
			open(fmt.Sprintf("%s, width %d", spmm, b.Width), ">= 1", "cuSPARSE was not measured")
		}
	}
	if gathers == 0 {
		open(spmm, ">= 1", "no gathers were measured")
	}
	ours := 0.0
	for _, e := range r.Epochs {
		if e.Name == cached && e.reddit() {
			ours = e.MS
		}
	}
	switch {
	case ours == 0:
		open(span, "<= 17", "no epoch of a graph of that size was measured")
		open(over, ">= 3", "no epoch of a graph of that size was measured")
		return
	case !strings.Contains(r.Device, "H200"):
		open(fmt.Sprintf("%s: %.2f", span, ours), "<= 17 on an H200", "another GPU: "+r.Device)
	default:
		met := ours <= 17
		r.Goals = append(r.Goals, goal{What: span, Value: ours, Goal: "<= 17", Met: &met})
	}
	best := 0.0
	if r.Peers != nil {
		for _, p := range r.Peers.Epochs { // against the fastest of PyG's forms
			if p.MS > 0 && (best == 0 || p.MS < best) {
				best = p.MS
			}
		}
	}
	if best == 0 {
		open(over, ">= 3", "PyG was not measured")
		return
	}
	least(over, best/ours, 3, ">= 3")
}
