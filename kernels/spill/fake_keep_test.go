package spill

import (
	"fmt"

	"dorylus/kernels"
)

// A fakeDevice reads lists where the host has them: to keep one is to count it.

// Keep implements kernels.Keeper.
func (d *fakeDevice) Keep(v []int32) error {
	if len(v) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.kept[&v[0]]; k != nil && k.values != len(v) {
		return fmt.Errorf("keep %d values, of which %d are kept already", len(v), k.values)
	}
	if d.kept[&v[0]] == nil {
		d.kept[&v[0]] = &fakeKept{values: len(v)}
	}
	d.kept[&v[0]].times++
	return nil
}

// Drop implements kernels.Keeper.
func (d *fakeDevice) Drop(v []int32) {
	if len(v) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[&v[0]]
	if k == nil || k.values != len(v) {
		panic(&kernels.ShapeError{Op: "Drop", Msg: "not kept"})
	}
	if k.times--; k.times == 0 {
		delete(d.kept, &v[0])
	}
}

type fakeKept struct{ values, times int }

// own refuses matrices of the host when an op is called, as a resident device does.
func (s *fakeStream) own(op string, ms ...*kernels.Mat) {
	for _, m := range ms {
		if m != nil && m.Host != nil && m.Rows > 0 && m.Cols > 0 {
			panic(&kernels.ShapeError{Op: op, Msg: "a matrix of the host"})
		}
	}
}
