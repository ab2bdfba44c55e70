// Package kerneltest is the conformance suite of kernels.Device. It is an
// ordinary package that takes the device as an argument, so that a new backend
// gets every test with one line,
//
//	kerneltest.Run(t, func() (kernels.Device, error) { return cpu.Open("avx2") })
//
// and so that `dorylus-engine devices --selftest` can run it outside go test.
//
// What each op should give is computed here by the dumbest formula that fits its
// comment, element by element in float64 (want.go), and compared within a
// tolerance that follows from the number of roundings (sum.go). Operands lie in
// larger buffers, at odd offsets, between guard values; outputs start as NaN of a
// known payload; everything that an op should not write is compared bit by bit.
package kerneltest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"dorylus/kernels"
)

// Case is one property of a device.
type Case struct {
	Name string // "SpMM/width=41"
	run  func(*lab)
}

// Cases is the whole suite, in a fixed order.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{
		deviceCases(), moveCases(), gemmCases(), rowCases(), spmmCases(), edgeCases(),
		attentionCases(), longCases(), headCases(), maxCases(), normCases(), accumulateCases(),
		dropoutCases(), lossCases(), bceCases(), blockCases(), optimCases(), bf16Cases(), streamCases(), shapeCases(), apartCases(),
	} {
		all = append(all, part...)
	}
	return all
}

// Run opens the device for each case and reports every property that it lacks.
func Run(t *testing.T, open func() (kernels.Device, error)) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Check(open); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check opens a device, checks the property on it and closes it; the error names
// the op, shapes, worst element and seed.
func (c Case) Check(open func() (kernels.Device, error)) (err error) {
	dev, err := open()
	if err != nil {
		return fmt.Errorf("open the device under test: %w", err)
	}
	l := &lab{dev: dev, open: open, seed: seedOf(c.Name)}
	l.rng = rand.New(rand.NewPCG(l.seed, 1))
	l.guarded(func() {
		s, err := dev.NewStream()
		if err != nil {
			l.failf("NewStream: %v", err)
			return
		}
		l.s = s
		c.run(l)
	})
	l.close()
	if err := dev.Close(); err != nil {
		l.failf("after the case: %v", err)
	}
	return errors.Join(l.failures...)
}

// seedOf makes the seed of a case from its name: cases do not depend on each
// other, nor on which of them run.
func seedOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64() >> 32
}

// maxFailures bounds what one case reports: the first few say it all.
const maxFailures = 4

// A lab is one case at work on one device.
type lab struct {
	dev      kernels.Device
	open     func() (kernels.Device, error)
	s        kernels.Stream
	rng      *rand.Rand
	seed     uint64
	failures []error
	mats     []*kernels.Mat
	graphs   []kernels.Graph
}

func (l *lab) failf(format string, args ...any) {
	if len(l.failures) < maxFailures {
		l.failures = append(l.failures, fmt.Errorf("%s: %s, seed %d", l.dev.Name(), fmt.Sprintf(format, args...), l.seed))
	}
}

// guarded runs f and reports a panic in it as a failure.
func (l *lab) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			l.failf("panic: %v", p)
		}
	}()
	f()
}

// alloc is a matrix that the lab frees.
func (l *lab) alloc(rows, cols int) *kernels.Mat {
	m, err := l.dev.Alloc(rows, cols)
	if err != nil {
		panic(fmt.Sprintf("alloc %d x %d: %v", rows, cols, err))
	}
	l.mats = append(l.mats, m)
	return m
}

// load is a graph that the lab unloads.
func (l *lab) load(g *kernels.CSR) kernels.Graph {
	r, err := l.dev.Load(g)
	if err != nil {
		panic(fmt.Sprintf("load a graph of %d x %d: %v", g.Rows(), g.Cols, err))
	}
	l.graphs = append(l.graphs, r)
	return r
}

// release gives back what was allocated and loaded so far.
func (l *lab) release() {
	for _, m := range l.mats {
		l.dev.Free(m)
	}
	for _, g := range l.graphs {
		l.dev.Unload(g)
	}
	l.mats, l.graphs = nil, nil
}

func (l *lab) close() {
	l.guarded(func() {
		if l.s != nil {
			if err := l.s.Close(); err != nil {
				l.failf("close the stream: %v", err)
			}
		}
		l.release()
	})
}
