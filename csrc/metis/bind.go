//go:build metis && cgo && unix

package metis

// #cgo CFLAGS: -O3 -std=c11 -Wall -Wextra -Werror
// #cgo LDFLAGS: -lmetis
// #include "part.h"
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"
)

// maxSeconds is when a cut is given up: METIS takes seconds for the graphs that
// it is a good choice for.
const maxSeconds = 1800

// bisectBelow is the number of parts up to which METIS's authors advise recursive
// bisection.
const bisectBelow = 8

// Linked says whether Partition works.
func Linked() bool { return true }

// Partition cuts a symmetric graph, columns ascending and without self-loops,
// into parts of about equal numbers of vertices that few edges cross, and returns
// the part of each vertex. Some parts may be empty where they would be tiny. The
// same arguments give the same parts.
func Partition(n int, rowPtr []int64, col []int32, parts int, seed uint64) ([]int32, error) {
	if err := check(n, rowPtr, col, parts); err != nil {
		return nil, fmt.Errorf("metis: %w", err)
	}
	if part, ok := trivial(n, len(col), parts); ok {
		return part, nil
	}
	part, err := run(n, rowPtr, col, parts, seed, parts <= bisectBelow)
	if err != nil {
		return nil, fmt.Errorf("metis: cut %d vertices and %d entries into %d parts: %w", n, len(col), parts, err)
	}
	return part, nil
}

// run calls METIS in a child, with arguments that have been checked.
func run(n int, rowPtr []int64, col []int32, parts int, seed uint64, bisect bool) ([]int32, error) {
	xadj := make([]int32, n+1)
	for v, p := range rowPtr {
		xadj[v] = int32(p)
	}
	part := make([]int32, n)
	how := C.int(0)
	if bisect {
		how = 1
	}
	code := C.dm_partition(C.int32_t(n), ptr(xadj), ptr(col), C.int32_t(parts), C.int32_t(seed&0x7fffffff), how, maxSeconds, ptr(part))
	switch {
	case code == C.DM_OK:
		return part, checkResult(part, parts)
	case code == C.DM_INPUT:
		return nil, fmt.Errorf("METIS refuses the graph")
	case code == C.DM_MEMORY:
		return nil, fmt.Errorf("METIS ran out of memory; use order lpa or stream")
	case code == C.DM_FORK:
		return nil, fmt.Errorf("no process could be made to run METIS in; use order lpa")
	case code == 128+C.int(syscall.SIGALRM):
		return nil, fmt.Errorf("METIS was stopped after %d s; use order lpa", maxSeconds)
	case code > 128:
		return nil, fmt.Errorf("METIS died of %v; use order lpa", syscall.Signal(code-128))
	default:
		return nil, fmt.Errorf("METIS gave up (code %d); use order lpa", int(code))
	}
}

func ptr(s []int32) *C.int32_t { return (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(s))) }
