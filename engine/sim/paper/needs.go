package paper

import (
	"cmp"
	"slices"

	"dorylus/kernels"
)

// Need is memory of one kind: of matrices of one size for one purpose, or of all that never
// lies elsewhere.
type Need struct {
	Name    string // "activations", "edges", "scratch"
	Purpose kernels.Purpose
	Bytes   int64 // that all of it takes of the device, rows with their padding
	Rows    int   // of a matrix, the largest one
	// Each is the bytes of one matrix, before the device has rounded them up; 0: of
	// what is not told apart by size. Count is how many there are.
	Each  int64
	Count int
	// Up and Down are how often ops read and set all of it, in the time since Reset.
	Up, Down float64
	Gathered bool // gathers read rows of it in any order
	Width    int  // columns that a gather takes together: those of a head of attention
}

// Names of what is no matrix, or held for a while only.
const (
	Edges   = "edges"
	Index   = "index"
	Scratch = "scratch"
	// OpScratch is what a device takes for the length of an op.
	OpScratch = "scratch of ops"
)

// kind tells needs apart.
type kind struct {
	name    string
	purpose kernels.Purpose
	each    int64
}

// kind of a matrix: those that a device may give up holding are told apart by size.
func (m *matrix) kind() kind {
	k := kind{name: m.name, purpose: m.purpose}
	if m.purpose != kernels.Other && m.purpose != kernels.Weights {
		k.each = m.bytes
	}
	return k
}

// Needs are what the device holds now, largest first.
func (d *Device) Needs() []Need {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.needs()
}

func (d *Device) needs() []Need {
	var needs []Need
	at := map[kind]int{}
	find := func(k kind) *Need {
		i, there := at[k]
		if !there {
			i = len(needs)
			at[k] = i
			needs = append(needs, Need{Name: k.name, Purpose: k.purpose, Each: k.each})
		}
		return &needs[i]
	}
	var touched = map[kind]float64{}
	for _, b := range d.mats {
		n := find(b.kind())
		n.Bytes += b.takes
		n.Rows = max(n.Rows, b.rows)
		n.Count++
		n.Up += float64(b.read)
		n.Down += float64(b.written)
		n.Gathered = n.Gathered || b.gathered
		n.Width = max(n.Width, b.width)
		touched[b.kind()] += float64(b.bytes)
	}
	for g := range d.graphs {
		n := find(kind{name: Edges})
		n.Bytes += g.takes
		n.Rows = max(n.Rows, g.rows)
		n.Count++
	}
	for _, l := range d.kept {
		n := find(kind{name: Index})
		n.Bytes += l.takes
		n.Rows = max(n.Rows, l.len)
		n.Count++
	}
	for i := range needs {
		n := &needs[i]
		if all := touched[kind{n.Name, n.Purpose, n.Each}]; all > 0 {
			n.Up, n.Down = n.Up/all, n.Down/all
		}
	}
	slices.SortFunc(needs, func(a, b Need) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name), cmp.Compare(b.Each, a.Each))
	})
	return needs
}

// Pause ends the counting of what ops read and set.
func (d *Device) Pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = true
}

// Reset forgets what ops have read and set so far.
func (d *Device) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.blocks {
		b.read, b.written = 0, 0
	}
}
