package paper

import (
	"slices"
	"testing"

	"dorylus/kernels"
)

// What is held, and how often it is read and set, comes back by name and purpose.
func TestNeeds(t *testing.T) {
	d := New(nil)
	x, err := d.AllocFor(kernels.Published, 100, 20)
	if err != nil {
		t.Fatal(err)
	}
	y, _ := d.AllocFor(kernels.Activations, 50, 20)
	tmp, _ := d.As(Scratch).Alloc(10, 1)
	big, _ := d.Alloc(1000, 16)
	d.Free(big)
	csr := &kernels.CSR{Cols: 100, RowPtr: make([]int64, 51), Col: nil}
	g, _ := d.Load(csr)
	ids := []int32{1, 2, 3}
	if err := d.Keep(ids); err != nil {
		t.Fatal(err)
	}
	s, _ := d.NewStream()
	for range 3 {
		s.SpMM(y, g, x, kernels.Gather{}, kernels.Span{Hi: 25})
	}
	s.Forward(y, y, nil, kernels.Span{Hi: 50})
	d.Pause()
	s.Zero(y)
	const publishedBytes, activationBytes = 4 * 100 * 32, 4 * 50 * 32
	sum := publishedBytes + activationBytes + 40 + 51*8 + 12
	want := map[string]Need{
		"published rows": {Purpose: kernels.Published, Bytes: publishedBytes, Rows: 100, Up: 3, Gathered: true},
		"activations":    {Purpose: kernels.Activations, Bytes: activationBytes, Rows: 50, Up: 1, Down: 2.5},
		Scratch:          {Bytes: 40, Rows: 10},
		Edges:            {Bytes: 51 * 8, Rows: 50},
		Index:            {Bytes: 12, Rows: 3},
		"other":          {}, // for a while
	}
	h := d.Holding()
	got := h.Needs
	for _, n := range got {
		w := want[n.Name]
		w.Count = 1
		if n.Purpose != kernels.Other {
			w.Each = w.Bytes
		}
		if n.Name == "other" {
			w.Count = 0 // no more
		}
		w.Name = n.Name
		if n != w {
			t.Errorf("%s: %+v, want %+v", n.Name, n, w)
		}
	}
	if len(got) != len(want) || got[0].Name != "published rows" {
		t.Errorf("%d needs, the largest %s; want %d, the largest published rows", len(got), got[0].Name, len(want))
	}
	// Two moments: with the big matrix, which went before the graph and the list came, and
	// without it.
	sums := []int64{}
	for _, m := range h.Moments {
		s := int64(0)
		for _, n := range m {
			s += n
		}
		sums = append(sums, s)
	}
	if want := []int64{int64(publishedBytes + activationBytes + 40 + 64000), int64(sum)}; !slices.Equal(sums, want) || h.Peak != want[0] {
		t.Errorf("moments of %d bytes and a peak of %d, want %d", sums, h.Peak, want)
	}
	if err := d.Close(); err == nil {
		t.Error("Close says nothing of what is held")
	}
	d.Free(x)
	d.Free(y)
	d.Free(tmp)
	d.Unload(g)
	d.Drop(ids)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
