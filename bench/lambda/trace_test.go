package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

// Two epochs by hand, the second one from 10 s to 20 s, with a latency of 1 s:
//
//	graph    10 ── 13        15 ─ 16
//	tensor        12 ────────────── 16.5      answers from 15.5
//	tensor                   15 ───────── 18  answers from 17
func TestDivide(t *testing.T) {
	spans := []span{{8, 13, false}, {12, 16.5, true}, {15, 16, false}, {15, 18, true}, {0, 9, true}}
	got := divide(spans, window{10, 20, 1}, time.Second, 2)
	want := shares{
		Epoch: 10, Graph: 2, Tensor: 2 + 2, Both: 1 + 1, None: 2,
		Injected: 2, BehindGraph: 0.5, Exposed: 1, // from 16 to 16.5 another task is at work, from 17 to 18 none is
	}
	for name, pair := range map[string][2]float64{
		"epoch": {got.Epoch, want.Epoch}, "graph": {got.Graph, want.Graph}, "tensor": {got.Tensor, want.Tensor}, "both": {got.Both, want.Both},
		"none": {got.None, want.None}, "injected": {got.Injected, want.Injected}, "behind graph tasks": {got.BehindGraph, want.BehindGraph}, "exposed": {got.Exposed, want.Exposed},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %v s, want %v", name, pair[0], pair[1])
		}
	}
	if h := got.hidden(); math.Abs(h-0.5) > 1e-9 {
		t.Errorf("%v is hidden, want a half", h)
	}
}

// Tasks that wait for a worker hide nothing: with two tasks and one worker, that one's
// latency is all there is from 15.5 to 16.5, of which a graph task takes a half.
func TestDivideOfFewWorkers(t *testing.T) {
	spans := []span{{15, 16, false}, {12, 16.5, true}, {15, 18, true}}
	for workers, want := range map[int]float64{1: 1.5, 2: 1} {
		if got := divide(spans, window{10, 20, 1}, time.Second, workers); math.Abs(got.Exposed-want) > 1e-9 {
			t.Errorf("%d workers: %v s are exposed, want %v", workers, got.Exposed, want)
		}
	}
}

// Means are over epochs, and a single task after the other hides nothing.
func TestDivideOfOneInterval(t *testing.T) {
	var spans []span
	for e := range 4 {
		at := 10 * float64(e)
		spans = append(spans, span{at, at + 4, false}, span{at + 4, at + 10, true})
	}
	got := divide(spans, window{10, 40, 3}, 60*time.Millisecond, 4)
	for name, pair := range map[string][2]float64{
		"epoch": {got.Epoch, 10}, "graph": {got.Graph, 4}, "tensor": {got.Tensor, 6}, "both": {got.Both, 0}, "injected": {got.Injected, 0.06}, "hidden": {got.hidden(), 0},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
}

func TestParseTrace(t *testing.T) {
	const text = `{"traceEvents":[
{"name":"GA","ph":"X","ts":0,"dur":1000000},
{"name":"epoch 1","ph":"i","ts":1000000},
{"name":"loss+∇AV","ph":"X","ts":1500000,"dur":500000},
{"name":"∇SC","ph":"X","ts":2000000,"dur":500000},
{"name":"∇GA","ph":"X","ts":2000000,"dur":500000},
{"name":"epoch 2","ph":"i","ts":3000000},
{"name":"eval AV","ph":"X","ts":3000000,"dur":1}
]}`
	spans, w, err := parseTrace([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if w != (window{1, 3, 1}) {
		t.Errorf("the window is %+v", w)
	}
	want := []span{{0, 1, false}, {1.5, 2, true}, {2, 2.5, false}, {2, 2.5, false}}
	if len(spans) != len(want) {
		t.Fatalf("%d tasks, want %d: %v", len(spans), len(want), spans)
	}
	for i := range want {
		if spans[i] != want[i] {
			t.Errorf("task %d is %v, want %v", i, spans[i], want[i])
		}
	}
	for bad, why := range map[string]string{
		`{"traceEvents":[{"name":"epoch 1","ph":"i","ts":1}]}`:                   "the ends of 1 epochs",
		`{"traceEvents":[{"name":"the trace ends at 5 tasks","ph":"i","ts":1}]}`: "the trace ends at 5 tasks",
		`{"traceEvents":[`: "unexpected end",
	} {
		if _, _, err := parseTrace([]byte(bad)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", bad, err, why)
		}
	}
}
