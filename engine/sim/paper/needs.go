package paper

import (
	"cmp"
	"slices"

	"dorylus/kernels"
)

// Need is memory of one kind.
type Need struct {
	Name    string // "activations", "edges", "scratch"
	Purpose kernels.Purpose
	Bytes   int64 // of all matrices of the kind, rows with their padding
	Rows    int   // of the largest matrix
	// Up and Down are how often ops read and set all of it, in the time since Reset.
	Up, Down float64
	Gathered bool // gathers read rows of it in any order
}

// Names of what is no matrix, or held for a while only.
const (
	Edges   = "edges"
	Index   = "index"
	Start   = "start"
	Scratch = "scratch"
)

// Needs are what the device holds now, largest first, and how much more it has held at a
// time, under the name Start: together the most that it has held.
func (d *Device) Needs() []Need {
	d.mu.Lock()
	defer d.mu.Unlock()
	var needs []Need
	find := func(name string, p kernels.Purpose) *Need {
		for i := range needs {
			if needs[i].Name == name && needs[i].Purpose == p {
				return &needs[i]
			}
		}
		needs = append(needs, Need{Name: name, Purpose: p})
		return &needs[len(needs)-1]
	}
	for _, b := range d.mats {
		n := find(b.name, b.purpose)
		n.Bytes += b.bytes
		n.Rows = max(n.Rows, b.rows)
		n.Up += float64(b.read)
		n.Down += float64(b.written)
		n.Gathered = n.Gathered || b.gathered
	}
	for g := range d.graphs {
		n := find(Edges, kernels.Other)
		n.Bytes += g.bytes
		n.Rows = max(n.Rows, g.rows)
	}
	for _, l := range d.kept {
		n := find(Index, kernels.Other)
		n.Bytes += l.bytes
		n.Rows = max(n.Rows, int(l.bytes/4))
	}
	if more := d.peak - d.live; more > 0 {
		find(Start, kernels.Other).Bytes = more
	}
	for i := range needs {
		if n := &needs[i]; n.Bytes > 0 {
			n.Up, n.Down = n.Up/float64(n.Bytes), n.Down/float64(n.Bytes)
		}
	}
	slices.SortFunc(needs, func(a, b Need) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
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
