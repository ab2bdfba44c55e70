package spill

import (
	"errors"
	"strings"
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/spill/spilltest"
)

const (
	rows    = spilltest.Rows
	sources = spilltest.Sources
	edges   = spilltest.Edges
)

func open(t *testing.T, arena int64, tile int) (*fakeDevice, kernels.Stream) {
	t.Helper()
	d, err := openFake(arena, tile, 1, func(rows, _ int) bool { return rows > 1 })
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

func alloc(t *testing.T, d *fakeDevice, rows, cols int) *kernels.Mat {
	t.Helper()
	m, err := d.Alloc(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPinnedMemoryIsPooled: what was freed is used again, zeroed, and all is given back.
func TestPinnedMemoryIsPooled(t *testing.T) {
	d, s := open(t, MinArena, 8)
	for i := range 5 {
		m := alloc(t, d, 100, 40)
		got := make([]float32, 100*40)
		s.Get(got, m)
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		for k, v := range got {
			if v != 0 {
				t.Fatalf("allocation %d: value %d is %v, want 0", i, k, v)
			}
			got[k] = 3
		}
		s.Put(m, got)
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		d.Free(m)
	}
	if d.pinned != 2 {
		t.Errorf("%d buffers are pinned, want 2: one matrix and the one for single rows", d.pinned)
	}
	m := alloc(t, d, 100, 40)
	if u := d.spill.Usage(); u.Spilled != 4*100*48 || u.Pinned != u.Spilled+bounceBytes || u.Arena != MinArena {
		t.Errorf("usage is %+v with one matrix of 100 x 48 values", u)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := d.spill.Close(); err == nil || !strings.Contains(err.Error(), "1 spilled matrices (19200 bytes)") {
		t.Errorf("closing with a matrix in hand gave %v", err)
	}
	d.Free(m)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestEachValueCrossesOnce: a row-wise op, and a gather by tiles, move each value of
// what they read up, and of what they write down, and no more.
func TestEachValueCrossesOnce(t *testing.T) {
	d, s := open(t, 256<<10, 8)
	e := spilltest.NewEnv(t, d, 1)
	a, b, x := alloc(t, d, rows, 64), alloc(t, d, rows, 64), alloc(t, d, sources, 64)
	moved := func(what string, up, down int64, f func()) {
		t.Helper()
		before := d.spill.Usage()
		f()
		if err := s.Wait(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		now := d.spill.Usage()
		if u, w := now.Up-before.Up, now.Down-before.Down; u != up || w != down {
			t.Errorf("%s moved %d bytes up and %d down, want %d and %d", what, u, w, up, down)
		}
	}
	const one = rows * 64 * 4
	moved("Add", 2*one, one, func() { s.Add(b, a, b) })
	moved("Forward of some rows", int64(spilltest.Some.Len())*64*4, int64(spilltest.Some.Len())*64*4, func() { s.Forward(b, a, nil, spilltest.Some) })
	moved("SpMM", sources*64*4, one, func() { s.SpMM(b, e.G, x, kernels.Gather{}, kernels.Span{Hi: rows}) })
	moved("GatherRows", 150*64*4, 0, func() {
		y, err := d.Alloc(1, 150*64)
		if err != nil {
			t.Fatal(err)
		}
		s.GatherRows(&kernels.Mat{Rows: 150, Cols: 64, Stride: 64, Addr: y.Addr}, a, e.Few)
	})
}

// TestErrors: what cannot be staged is an error that names the op and a way out, and
// the stream goes on after it.
func TestErrors(t *testing.T) {
	d, s := open(t, MinArena, 8)
	e := spilltest.NewEnv(t, d, 1)
	x, y := alloc(t, d, sources, 40), alloc(t, d, rows, 40)
	s.SDDMM(&kernels.Mat{Rows: edges, Cols: 1, Stride: 1, Addr: alloc(t, d, 1, edges).Addr}, e.G, x, y, kernels.Span{Hi: rows})
	if err := s.Wait(); err == nil || !strings.Contains(err.Error(), "SDDMM: staging its operands takes") || !strings.Contains(err.Error(), "--gpu-memory") {
		t.Errorf("SDDMM of more than the arena: %v", err)
	}
	s.Add(&kernels.Mat{Rows: 20, Cols: 10, Stride: 10, Addr: y.Addr}, x.Sub(kernels.Span{Hi: 20}).Columns(0, 10), x.Sub(kernels.Span{Hi: 20}).Columns(0, 10))
	if err := s.Wait(); err == nil || !strings.Contains(err.Error(), "its rows must be parts of the matrix's") {
		t.Errorf("a view with another stride: %v", err)
	}
	s.Zero(&kernels.Mat{Rows: 2, Cols: 4, Stride: 4, Addr: Base + 1<<50})
	if err := s.Wait(); err == nil || !strings.Contains(err.Error(), "not within a spilled matrix") {
		t.Errorf("an address of nothing: %v", err)
	}
	s.Zero(y)
	if err := s.Wait(); err != nil {
		t.Errorf("after errors: %v", err)
	}
	d.Free(x)
	s.Zero(x)
	if err := s.Wait(); err == nil {
		t.Error("an op on a freed matrix gave no error")
	}
	for _, c := range []Config{{Bytes: 1 << 10}, {Bytes: MinArena, Tile: 6}, {Bytes: MinArena, Arena: 4}} {
		c.Pin = func(n int) ([]float32, error) { return make([]float32, n), nil }
		if _, err := New(c); err == nil {
			t.Errorf("an arena of %d bytes at %d with tiles of %d gave no error", c.Bytes, c.Arena, c.Tile)
		}
	}
	full := errors.New("no memory to pin")
	if _, err := New(Config{Bytes: MinArena, Pin: func(int) ([]float32, error) { return nil, full }}); !errors.Is(err, full) {
		t.Errorf("without memory to pin: %v", err)
	}
	d.spill.cfg.Pin = func(int) ([]float32, error) { return nil, full }
	if _, err := d.Alloc(3, 50); !errors.Is(err, full) || d.spill.Held() != 1 {
		t.Errorf("a matrix without memory to pin: %v, %d held, want 1", err, d.spill.Held())
	}
}
