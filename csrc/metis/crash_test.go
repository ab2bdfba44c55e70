//go:build metis && cgo && unix

package metis

import (
	"strings"
	"testing"
)

// K-way into one part divides by zero inside METIS 5.1, and a column beyond the
// graph makes it read wild memory. Partition lets neither through; run, called
// past the checks, shows that only the child dies of them.
func TestACrashOfMETISIsAnError(t *testing.T) {
	n, rowPtr, col := grid(30)
	if part, err := run(n, rowPtr, col, 1, 0, false); err == nil {
		t.Logf("this METIS survives k-way into one part: %v", part[:3])
	} else if !strings.Contains(err.Error(), "METIS died of floating point exception") {
		t.Errorf("k-way into one part: %v", err)
	}
	wild := make([]int32, len(col))
	for e := range wild {
		wild[e] = 1 << 30
	}
	if _, err := run(n, rowPtr, wild, 4, 0, true); err == nil || !strings.Contains(err.Error(), "METIS died of") {
		t.Errorf("columns beyond the graph: %v", err)
	}
	if _, err := Partition(n, rowPtr, col, 4, 0); err != nil {
		t.Errorf("the next cut after a crash: %v", err)
	}
}

// Bisection into one part returns success and writes nothing.
func TestAnUnwrittenResultIsAnError(t *testing.T) {
	n, rowPtr, col := grid(30)
	if part, err := run(n, rowPtr, col, 1, 0, true); err == nil {
		for v, p := range part {
			if p != 0 {
				t.Fatalf("vertex %d is in part %d of 1", v, p)
			}
		}
	}
}
