package pserver

import (
	"slices"
	"testing"

	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// TestASnapshotTellsPeakMemory: each parameter server says what it has taken.
func TestASnapshotTellsPeakMemory(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 3, func(c *ServerConfig) {
		if c.Shard < 2 { // the last one does not know
			c.PeakMemory = func() int64 { return 5 + int64(c.Shard) }
		}
	})
	c := joined(t, x.want(0, 1, 1, kernels.Span{Hi: 1}, optims[0]))[0]
	if got := c.PeakMemory(); !slices.Equal(got, make([]int64, 3)) {
		t.Errorf("before anybody was asked: %v", got)
	}
	if _, err := c.Snapshot(); err != nil {
		t.Fatal(err)
	}
	if got := c.PeakMemory(); !slices.Equal(got, []int64{5, 6, 0}) {
		t.Errorf("peaks of memory %v, want 5, 6 and 0", got)
	}
}
