package params

import (
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
)

// The tests of this file are named after what the Dorylus paper (OSDI'21) says
// about weight versions; the sections are the paper's.

func fetch(t *testing.T, s *Server, interval, epoch int) engine.Weights {
	t.Helper()
	w, err := s.Fetch(t.Context(), interval, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// values are all weights of a version, as they are now.
func values(w engine.Weights) []float32 {
	var x []float32
	for _, m := range w.Mats {
		for r := range m.Rows {
			x = append(x, m.Row(r)...)
		}
	}
	return x
}

func stashIs(t *testing.T, s *Server, want ...VersionInfo) {
	t.Helper()
	if got := s.Stash(); !slices.Equal(got, want) {
		t.Fatalf("the stash is %v, want %v", got, want)
	}
}

// Section 5: the forward pass uses the newest weights, the backward pass of the same
// interval the ones that its forward pass used, though newer ones are there.
func TestSection5BackwardUsesTheWeightsOfForward(t *testing.T) {
	s := open(t, Config{Blocks: 1, Intervals: 2})
	forward := fetch(t, s, 0, 1)
	before := values(forward)
	whole(t, s, 0)
	whole(t, s, 1)
	backward := fetch(t, s, 0, 1)
	if backward.Version != 0 || !slices.Equal(values(backward), before) {
		t.Errorf("the backward pass got version %d, or its values have changed", backward.Version)
	}
	if w := fetch(t, s, 1, 1); w.Version != 2 || slices.Equal(values(w), before) {
		t.Errorf("another interval's forward pass got version %d, want the newest, 2", w.Version)
	}
	if w := fetch(t, s, 0, 2); w.Version != 2 {
		t.Errorf("the interval's next epoch got version %d, want the newest, 2", w.Version)
	}
}

// Section 5: two layers of one interval and epoch never compute with different
// versions: the stash is per interval and epoch, not per layer.
func TestSection5AllLayersUseOneVersion(t *testing.T) {
	s := open(t, Config{Blocks: 1, Intervals: 1})
	for layer := range 3 {
		if w := fetch(t, s, 0, 0); w.Version != 0 {
			t.Errorf("layer %d got version %d, want 0 as the first", layer+1, w.Version)
		}
		whole(t, s, layer)
	}
}

// Section 5: a stashed version goes when its last interval has used it backward; a
// version that nobody holds goes at once.
func TestSection5AStashedVersionGoesWithItsLastInterval(t *testing.T) {
	s := open(t, Config{Blocks: 1, Intervals: 3})
	fetch(t, s, 0, 0)
	fetch(t, s, 1, 0)
	whole(t, s, 0)
	whole(t, s, 1) // version 1 is held by nobody
	stashIs(t, s, VersionInfo{0, 2}, VersionInfo{2, 0})
	fetch(t, s, 2, 2)
	whole(t, s, 2)
	stashIs(t, s, VersionInfo{0, 2}, VersionInfo{2, 1}, VersionInfo{3, 0})
	s.Release(0, 0)
	s.Release(0, 0)
	stashIs(t, s, VersionInfo{0, 1}, VersionInfo{2, 1}, VersionInfo{3, 0})
	s.Release(1, 0)
	s.Release(2, 2)
	stashIs(t, s, VersionInfo{3, 0})
}

// A late repeat of a task must not pin a version for ever, as it did in the paper's
// release: the pin belongs to (interval, epoch).
func TestALateRepeatPinsNothing(t *testing.T) {
	s := open(t, Config{Blocks: 1, Intervals: 1})
	for e := range 5 {
		fetch(t, s, 0, e)
		fetch(t, s, 0, e) // relaunched
		whole(t, s, e)
		s.Release(0, e)
		for old := range e + 1 {
			if _, err := s.Fetch(t.Context(), 0, old); err == nil || !strings.Contains(err.Error(), "late repeat") {
				t.Fatalf("a fetch for epoch %d after it was finished: %v", old, err)
			}
		}
		whole(t, s, e) // its gradients come once more as well
		stashIs(t, s, VersionInfo{Version: e + 1})
	}
}

// An evaluation pins under a negative interval, and may come back to an epoch.
func TestEvaluationsPinToo(t *testing.T) {
	s := open(t, Config{Blocks: 1, Intervals: 1})
	whole(t, s, 0)
	if w := fetch(t, s, -1, 0); w.Version != 1 {
		t.Errorf("the evaluation after epoch 0 got version %d", w.Version)
	}
	whole(t, s, 1)
	stashIs(t, s, VersionInfo{1, 1}, VersionInfo{2, 0})
	s.Release(-1, 0)
	stashIs(t, s, VersionInfo{2, 0})
	if w := fetch(t, s, -1, 0); w.Version != 2 {
		t.Errorf("a second evaluation got version %d", w.Version)
	}
	s.Release(-1, 0)
	if _, err := s.Fetch(t.Context(), 1, 0); err == nil || !strings.Contains(err.Error(), "interval 1 of 1") {
		t.Errorf("fetch of an interval too many: %v", err)
	}
}
