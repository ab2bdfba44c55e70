//go:build cgo && amd64 && linux

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestJudge: ratios are of outcomes of the same round, memory is beside the leaner peer, a
// goal is of the engine as it is, and what a peer has not measured is null, not met.
func TestJudge(t *testing.T) {
	w := &work{Goals: map[string]float64{pyg: 4, dgl: 2}}
	all := map[string][]outcome{
		ours: {{Epoch: 1, Memory: 100}, {Epoch: 2, Memory: 100}, {Epoch: 4, Memory: 100}},
		same: {{Epoch: 2, Memory: 300}, {Epoch: 4, Memory: 300}, {Epoch: 8, Memory: 300}},
		pyg:  {{Epoch: 3, Memory: 200}, {Epoch: 10, Memory: 200}, {Epoch: 20, Memory: 200}},
		dgl:  {{Memory: 900}}, // it said nothing of its epochs
	}
	r := &result{By: map[string]*row{}}
	for c, out := range all {
		r.add(c, out)
	}
	r.judge(w, all)
	want := []struct {
		what, ratio, want string
		met               bool
	}{
		{"epoch time, pyg / ours", "5.00 (3.00-5.00)", "at least 4", true}, {"epoch time, pyg / same", "2.50 (1.50-2.50)", "", false},
		{"epoch time, dgl / ours", "-", "at least 2", false}, {"epoch time, dgl / same", "-", "", false},
		{"peak memory, ours / pyg", "0.500", "at most 0.6", true},
	}
	if len(r.Goals) != len(want) {
		t.Fatalf("%d goals: %+v", len(r.Goals), r.Goals)
	}
	for i, g := range r.Goals {
		if c := want[i]; g.What != c.what || g.Ratio.String() != c.ratio || g.Want != c.want || g.Met != c.met {
			t.Errorf("goal %d: %q, %s, %q, met %v; want %+v", i, g.What, g.Ratio, g.Want, g.Met, c)
		}
	}
	if missed, of := (&report{Works: []*result{r}}).missed(); missed != 1 || of != 3 {
		t.Errorf("%d of %d goals missed, want 1 of 3", missed, of)
	}
	text, err := json.Marshal(r.Goals)
	if err != nil || strings.Count(string(text), `"ratio":null`) != 2 {
		t.Errorf("as JSON: %v\n%s", err, text)
	}
}

// TestSpread: the median of an even number lies between the middle two.
func TestSpread(t *testing.T) {
	if got, want := spreadOf([]float64{4, 1, 2, 9}), (spread{3, 1, 9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestScaled: a made graph has a share of its edges, one that is read stays as it is.
func TestScaled(t *testing.T) {
	for _, w := range works {
		s, made := w.scaled(0.1), strings.HasPrefix(w.Data, "synth:")
		if (s.Data != w.Data) != made || made && strings.Contains(s.Data, strings.Split(w.Data, "degree=")[1]) {
			t.Errorf("%s: %s of %s", w.Name, s.Data, w.Data)
		}
	}
	if _, unknown := pick("gcn-cora,gcn"); len(unknown) != 1 || unknown[0] != "gcn" {
		t.Errorf("unknown works: %q", unknown)
	}
}
