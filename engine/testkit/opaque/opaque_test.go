package opaque_test

import (
	"errors"
	"strings"
	"testing"

	"dorylus/engine/testkit/opaque"
	"dorylus/kernels"
	"dorylus/kernels/kerneltest"
	"dorylus/kernels/ref"
)

func TestConformance(t *testing.T) { kerneltest.Run(t, opaque.Open(ref.Open)) }

// lab is a device with one stream and a matrix of 3 x 2.
func lab(t *testing.T) (*opaque.Device, kernels.Stream, *kernels.Mat) {
	t.Helper()
	host, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	d := opaque.New(host)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		d.Free(m)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if m.Host != nil || m.Addr == 0 {
		t.Fatalf("Alloc(3, 2) has Host %v and Addr %#x", m.Host, m.Addr)
	}
	return d, s, m
}

// TestNothingBeforeWait: what an op makes is there after Wait, not before.
func TestNothingBeforeWait(t *testing.T) {
	_, s, m := lab(t)
	got := make([]float32, 6)
	s.Put(m, []float32{1, 2, 3, 4, 5, 6})
	s.Get(got, m)
	if got[0] != 0 {
		t.Errorf("before Wait the first value is there: %v", got[0])
	}
	if err := s.Wait(); err != nil || got[5] != 6 {
		t.Errorf("after Wait: %v, %v", got, err)
	}
}

// TestMoves: what crosses is counted, and kept lists cross once.
func TestMoves(t *testing.T) {
	d, s, m := lab(t)
	x := kernels.FromSlice(4, 2, []float32{0, 1, 2, 3, 4, 5, 6, 7})
	ids := []int32{3, 1, 0, 2}
	s.GatherRows(m, x, ids[:3]) // host rows
	to, err := d.Alloc(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free(to)
	s.GatherRows(to, m, []int32{2, 2, 2})
	if err := d.Keep(ids); err != nil {
		t.Fatal(err)
	}
	s.ScatterRows(to, m.Sub(kernels.Span{Hi: 2}), ids[2:])
	back := kernels.FromSlice(3, 2, make([]float32, 6))
	s.Copy(back, to)
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	if want := []float32{6, 7, 0, 1, 2, 3}; back.Host[0] != want[0] || back.Host[4] != want[4] {
		t.Errorf("rows came back as %v, want %v", back.Host, want)
	}
	want := map[string]int64{"rows up": 24, "ids": 12, "keep": 16, "rows down": 24}
	got := d.Moved()
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %d bytes, want %d", k, got[k], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("moved %v, want %v", got, want)
	}
	d.Drop(ids)
}

// refused says that f panics with a ShapeError that has the words.
func refused(t *testing.T, words string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		e, ok := recover().(*kernels.ShapeError)
		if !ok || !strings.Contains(e.Error(), words) {
			t.Errorf("got %v, want a ShapeError with %q", e, words)
		}
	}()
	f()
}

// TestRefusals: what a GPU could not do is a bug of the caller.
func TestRefusals(t *testing.T) {
	d, s, m := lab(t)
	host := kernels.FromSlice(3, 2, make([]float32, 6))
	refused(t, "host memory", func() { s.Add(m, m, host) })
	refused(t, "not in memory", func() {
		s.Zero(&kernels.Mat{Rows: 3, Cols: 2, Stride: 16, Addr: m.Addr + 4096})
	})
	refused(t, "not in memory", func() {
		s.Zero(&kernels.Mat{Rows: 4, Cols: 2, Stride: 16, Addr: m.Addr})
	})
	ids := []int32{0, 1, 2}
	if err := d.Keep(ids); err != nil {
		t.Fatal(err)
	}
	ids[1] = 2
	refused(t, "was 1 and is 2", func() {
		s.Forward(m, m, &kernels.Epilogue{Drop: kernels.Dropout{P: 0.5, IDs: ids}}, kernels.Span{Hi: 3})
	})
	ids[1] = 1
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "not dropped") {
		t.Errorf("Close with a kept list: %v", err)
	}
	d.Drop(ids)
	refused(t, "does not keep", func() { d.Drop(ids) })
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
}

// TestFaults: an op fails on demand, with its shapes, and the stream goes on; memory that is
// freed too early is noticed.
func TestFaults(t *testing.T) {
	d, s, m := lab(t)
	bad := errors.New("bad luck")
	d.Fail("Zero", 1, bad)
	s.Zero(m)
	s.Zero(m)
	if err := s.Wait(); !errors.Is(err, bad) || !strings.Contains(err.Error(), "Zero (3 x 2)") {
		t.Errorf("the second Zero gave %v", err)
	}
	other, err := d.Alloc(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.Zero(other)
	d.Free(other)
	if err := s.Wait(); err == nil {
		t.Error("a matrix was freed before the op had run, and nobody noticed")
	}
	d.Fail("Alloc", 0, bad)
	if _, err := d.Alloc(2, 2); !errors.Is(err, bad) {
		t.Errorf("Alloc gave %v", err)
	}
}
