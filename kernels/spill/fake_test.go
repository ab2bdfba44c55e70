package spill

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// A fakeDevice has memory of its own, addresses and three lines whose work runs in
// Wait, in an order that a seed chooses and that only Await restricts. It computes with
// ref.
type fakeDevice struct {
	kernels.Device // ref: graphs
	mem            []float32
	spill          *Memory
	spills         func(rows, cols int) bool
	seed           uint64

	worker sync.Mutex

	mu      sync.Mutex
	used    int
	mats    map[*kernels.Mat]bool
	kept    map[*int32]*fakeKept
	streams int
	pinned  int
}

const (
	fakeBase  = uintptr(1) << 32
	fakeArena = 1 << 19 // values of resident memory before the arena, and behind it
)

func openFake(arena int64, tile int, seed uint64, spills func(rows, cols int) bool) (*fakeDevice, error) {
	host, err := ref.Open()
	if err != nil {
		return nil, err
	}
	d := &fakeDevice{Device: host, mem: make([]float32, 2*fakeArena+arena/4), spills: spills, seed: seed, mats: map[*kernels.Mat]bool{}, kept: map[*int32]*fakeKept{}}
	for i := range d.mem {
		d.mem[i] = float32(math.NaN())
	}
	d.spill, err = New(Config{
		Arena: fakeBase + fakeArena*4, Bytes: arena, Tile: tile,
		Pin:   func(n int) ([]float32, error) { d.pinned++; return make([]float32, n), nil },
		Unpin: func([]float32) error { d.pinned--; return nil },
	})
	return d, err
}

func (d *fakeDevice) Name() string { return "fake" }

func (d *fakeDevice) Alloc(rows, cols int) (*kernels.Mat, error) {
	stride := kernels.PadCols(cols)
	if rows < 0 || cols < 0 || stride < cols || stride > 0 && rows > math.MaxInt32/stride {
		return nil, errors.New("no such size")
	}
	if d.spills(rows, cols) {
		return d.spill.Alloc(rows, cols)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &kernels.Mat{Rows: rows, Cols: cols, Stride: stride}
	if n := rows * stride; n > 0 {
		if d.used+n > fakeArena {
			return nil, fmt.Errorf("out of memory with %d values in use", d.used)
		}
		clear(d.mem[d.used : d.used+n])
		m.Addr = fakeBase + uintptr(d.used)*4
		d.used += n + kernels.Align
	}
	d.mats[m] = true
	return m, nil
}

func (d *fakeDevice) Free(m *kernels.Mat) {
	if m == nil || d.spill.Free(m) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.mats[m] {
		panic(&kernels.ShapeError{Op: "Free", Msg: "not held"})
	}
	delete(d.mats, m)
	if len(d.mats) == 0 {
		d.used = 0
	}
}

func (d *fakeDevice) NewStream() (kernels.Stream, error) {
	h, err := d.Device.NewStream()
	if err != nil {
		return nil, err
	}
	d.seed++
	return NewStream(&fakeStream{d: d, h: h, rng: rand.New(rand.NewPCG(d.seed, 7))}, d.spill), nil
}

func (d *fakeDevice) Close() error {
	var errs []error
	if n := len(d.mats) + d.spill.Held(); n > 0 {
		errs = append(errs, fmt.Errorf("%d matrices were not freed", n))
	}
	if n := len(d.kept); n > 0 {
		errs = append(errs, fmt.Errorf("%d lists were not dropped", n))
	}
	errs = append(errs, d.Device.Close())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := d.spill.Close(); err != nil {
		return err
	}
	if d.pinned != 0 {
		return fmt.Errorf("%d pinned buffers are left", d.pinned)
	}
	return nil
}

// host is where a matrix lies in mem; one of the host stays.
func (d *fakeDevice) host(m *kernels.Mat) *kernels.Mat {
	if m == nil || m.Host != nil {
		return m
	}
	h := *m
	h.Addr, h.Host = 0, d.mem[:0]
	if m.Rows > 0 && m.Cols > 0 {
		if m.Addr < fakeBase || m.Addr >= fakeBase+uintptr(len(d.mem))*4 {
			panic(fmt.Sprintf("the device was given address %#x, %d x %d", m.Addr, m.Rows, m.Cols))
		}
		h.Host = d.mem[(m.Addr-fakeBase)/4:]
	}
	return &h
}

// work is an entry of a line.
type work struct {
	run   func() error
	after Mark // -1: none
	mark  Mark // -1: none
}

type fakeStream struct {
	d     *fakeDevice
	h     kernels.Stream
	rng   *rand.Rand
	lines [3][]work
	done  map[Mark]bool
	marks Mark
	err   error
	steps []func() // ends of what was queued before a host step
}

func (s *fakeStream) add(l Line, w work) { s.lines[l] = append(s.lines[l], w) }

func (s *fakeStream) op(f func(h kernels.Stream)) {
	s.add(Compute, work{run: func() error { f(s.h); return s.h.Wait() }, after: -1, mark: -1})
}

// index is where a copy of n values begins in mem: it has to lie in the arena.
func (s *fakeStream) index(a uintptr, n int) int {
	c := s.d.spill.cfg
	if a < c.Arena || a+uintptr(n)*4 > c.Arena+uintptr(c.Bytes) || a%4 != 0 {
		panic(fmt.Sprintf("a copy of %d values at %#x, outside of the arena", n, a))
	}
	return int((a - fakeBase) / 4)
}

func (s *fakeStream) Upload(to uintptr, from []float32) {
	at := s.index(to, len(from))
	s.add(In, work{run: func() error { copy(s.d.mem[at:], from); return nil }, after: -1, mark: -1})
}

func (s *fakeStream) Download(to []float32, from uintptr) {
	at := s.index(from, len(to))
	s.add(Out, work{run: func() error { copy(to, s.d.mem[at:]); return nil }, after: -1, mark: -1})
}

func (s *fakeStream) Mark(l Line) Mark {
	s.marks++
	s.add(l, work{after: -1, mark: s.marks})
	return s.marks
}

func (s *fakeStream) Await(l Line, m Mark) { s.add(l, work{after: m, mark: -1}) }

func (s *fakeStream) HostStep(op string, f func() error) {
	before := s.lines
	s.lines = [3][]work{}
	s.steps = append(s.steps, func() {
		s.play(before)
		if s.err == nil {
			s.err = f()
		}
	})
}

// play runs the lines, one entry of any line that may go on at a time.
func (s *fakeStream) play(lines [3][]work) {
	for s.err == nil {
		var ready []int
		left := false
		for i, l := range lines {
			left = left || len(l) > 0
			if len(l) > 0 && (l[0].after < 0 || s.done[l[0].after]) {
				ready = append(ready, i)
			}
		}
		if !left {
			return
		}
		if len(ready) == 0 {
			panic("the lines wait for each other")
		}
		i := ready[s.rng.IntN(len(ready))]
		w := lines[i][0]
		lines[i] = lines[i][1:]
		if w.run != nil {
			s.err = w.run()
		}
		if w.mark >= 0 {
			s.done[w.mark] = true
		}
	}
}

func (s *fakeStream) Wait() error {
	s.d.worker.Lock() // one stream's work at a time: all stage in one arena
	defer s.d.worker.Unlock()
	if s.done == nil {
		s.done = map[Mark]bool{}
	}
	for _, f := range s.steps {
		f()
	}
	s.play(s.lines)
	err := s.err
	s.lines, s.steps, s.err = [3][]work{}, nil, nil
	if e := s.h.Wait(); err == nil {
		err = e
	}
	return err
}

func (s *fakeStream) Close() error { return errors.Join(s.Wait(), s.h.Close()) }
