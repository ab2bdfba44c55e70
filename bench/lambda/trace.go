package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// span is one task of a trace, in seconds since the run's start.
type span struct {
	from, to float64
	tensor   bool // else it is a graph task
}

// window is the part of a run that is looked at: from the end of its first epoch to
// that of its last one.
type window struct {
	from, to float64
	epochs   int
}

// readTrace returns the training tasks of a run's trace.json, and its window.
func readTrace(folder string) ([]span, window, error) {
	path := filepath.Join(folder, "trace.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, window{}, err
	}
	spans, w, err := parseTrace(text)
	if err != nil {
		return nil, w, fmt.Errorf("read %s: %w", path, err)
	}
	return spans, w, nil
}

func parseTrace(text []byte) ([]span, window, error) {
	var t struct {
		Events []struct {
			Name  string  `json:"name"`
			Phase string  `json:"ph"`
			TS    float64 `json:"ts"`
			Dur   float64 `json:"dur"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, window{}, err
	}
	var spans []span
	w := window{epochs: -1}
	for _, e := range t.Events {
		switch {
		case e.Phase == "i" && strings.HasPrefix(e.Name, "epoch "):
			if w.epochs++; w.epochs == 0 {
				w.from = e.TS / 1e6
			}
			w.to = e.TS / 1e6
		case e.Phase == "i" && strings.HasPrefix(e.Name, "the trace ends"):
			return nil, w, errors.New(e.Name)
		case e.Phase == "X" && !strings.HasPrefix(e.Name, "eval"):
			kind := strings.TrimPrefix(e.Name, "∇")
			graph := strings.HasPrefix(kind, "GA") || strings.HasPrefix(kind, "SC")
			spans = append(spans, span{e.TS / 1e6, (e.TS + e.Dur) / 1e6, !graph})
		}
	}
	if w.epochs < 1 || w.to <= w.from {
		return nil, w, fmt.Errorf("it has the ends of %d epochs: 2 at least are needed", w.epochs+1)
	}
	return spans, w, nil
}

// shares is how an epoch's time, or the latency in it, divides, in seconds.
type shares struct {
	Epoch  float64 `json:"epoch"` // of wall time
	Graph  float64 `json:"graph_only"`
	Tensor float64 `json:"tensor_only"`
	Both   float64 `json:"both"`
	None   float64 `json:"neither"`
	// Injected is the latency of all tensor tasks, one after the other; BehindGraph, how
	// much of it has passed while some graph task ran; Exposed, the wall time in which
	// nothing but latency was under way, with all workers or with those that had a task.
	Injected    float64 `json:"injected"`
	BehindGraph float64 `json:"injected_behind_graph"`
	Exposed     float64 `json:"exposed"`
}

// hidden is the share of the injected latency that has passed behind something else.
func (s shares) hidden() float64 { return 1 - s.Exposed/s.Injected }

// divide works the shares out, a mean over the epochs of a window. The service delays
// what workers send: so the last part of each tensor task, as long as the latency, is
// spent waiting for an answer that has been sent. A worker has one task at a time, so of
// more tensor tasks than workers some wait for one.
func divide(spans []span, w window, latency time.Duration, workers int) shares {
	type edge struct {
		at                      float64
		graph, tensor, delaying int
	}
	var edges []edge
	for _, s := range spans {
		from, to := max(s.from, w.from), min(s.to, w.to)
		if to <= from {
			continue
		}
		if !s.tensor {
			edges = append(edges, edge{at: from, graph: 1}, edge{at: to, graph: -1})
			continue
		}
		edges = append(edges, edge{at: from, tensor: 1}, edge{at: to, tensor: -1})
		if sent := max(s.to-latency.Seconds(), from); sent < to {
			edges = append(edges, edge{at: sent, delaying: 1}, edge{at: to, delaying: -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	var out shares
	var on edge
	add := func(until float64) {
		took := (until - on.at) / float64(w.epochs)
		switch {
		case on.graph > 0 && on.tensor > 0:
			out.Both += took
		case on.graph > 0:
			out.Graph += took
		case on.tensor > 0:
			out.Tensor += took
		default:
			out.None += took
		}
		out.Epoch += took
		out.Injected += took * float64(on.delaying)
		if on.graph > 0 {
			out.BehindGraph += took * float64(on.delaying)
		} else if on.delaying > 0 && on.delaying >= min(on.tensor, workers) {
			out.Exposed += took
		}
		on.at = until
	}
	on.at = w.from
	for _, e := range edges {
		add(e.at)
		on.graph, on.tensor, on.delaying = on.graph+e.graph, on.tensor+e.tensor, on.delaying+e.delaying
	}
	add(w.to)
	return out
}
