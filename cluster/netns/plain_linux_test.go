package netns

import (
	"slices"
	"testing"
	"time"

	"dorylus/engine/testkit"
)

// The bits are those of one process, over a slow and lossy network.
func TestRunOverShapedLinks(t *testing.T) {
	for _, c := range []struct {
		name           string
		graphs, params int
		train          []string
	}{
		{"gcn", 4, 2, []string{"--epochs=40"}},
		{"gat", 3, 2, []string{"--epochs=15", "--model=gat"}},
		{"sage, clipped", 3, 2, []string{"--epochs=15", "--model=sage", "--clip-norm=1"}},
		{"gcn, coauthor cs", 4, 2, []string{"--epochs=10", "--data=cs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.graphs, c.params, 1)
			if slices.Contains(c.train, "--data=cs") {
				npz := testkit.Shared(t, "data", "coauthor-cs", "ms_academic_cs.npz")
				r.call(t, "prepare", npz, "-o", "cs", "--split=per-class:20/30", "--features=row-normalize")
			}
			want := r.undisturbed(t, c.train...)
			began := time.Now()
			l := r.launch(t, append(c.train, "--out=RUN")...)
			same(t, "over shaped links", l.done(2*time.Minute), want)
			r.nothingLeft(t, "RUN")
			t.Logf("%v", time.Since(began).Round(time.Millisecond))
		})
	}
}
