package opaque

import (
	"fmt"
	"sort"
	"unsafe"

	"dorylus/kernels"
)

// keptList is a slice that the device has a copy of.
type keptList struct {
	v    []int32
	copy []int32
	n    int // Keeps
}

// Keep implements kernels.Keeper.
func (d *Device) Keep(v []int32) error {
	if err := d.trip("Keep"); err != nil {
		return fmt.Errorf("%s: keep %d numbers: %w", d.Name(), len(v), err)
	}
	if len(v) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[unsafe.SliceData(v)]
	switch {
	case k == nil:
		d.kept[unsafe.SliceData(v)] = &keptList{v: v, copy: append([]int32(nil), v...), n: 1}
		d.moved["keep"] += int64(4 * len(v))
		d.hold(Memory{Kept: int64(4 * len(v))})
	case len(k.v) != len(v):
		return fmt.Errorf("%s: keep %d numbers of which %d are kept already", d.Name(), len(v), len(k.v))
	default:
		k.n++
	}
	return nil
}

// Drop implements kernels.Keeper. A list that is not kept, or has changed, is a bug of
// the caller and panics.
func (d *Device) Drop(v []int32) {
	if len(v) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[unsafe.SliceData(v)]
	if k == nil || len(k.v) != len(v) {
		panic(&kernels.ShapeError{Op: "Drop", Msg: fmt.Sprintf("%d numbers that %s does not keep", len(v), d.Name())})
	}
	k.same("Drop")
	if k.n--; k.n == 0 {
		delete(d.kept, unsafe.SliceData(v))
		d.hold(Memory{Kept: -int64(4 * len(v))})
	}
}

// same panics where the caller's list is no longer what was kept.
func (k *keptList) same(op string) {
	for i, x := range k.v {
		if x != k.copy[i] {
			panic(&kernels.ShapeError{Op: op, Msg: fmt.Sprintf("number %d of a kept list of %d was %d and is %d", i, len(k.v), k.copy[i], x)})
		}
	}
}

// list is v as an op reads it on the device: a part of what is kept, or v itself, which
// is then counted as moved.
func (d *Device) list(op string, v []int32) []int32 {
	if len(v) == 0 {
		return v
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(v)))
	for _, k := range d.kept {
		lo := uintptr(unsafe.Pointer(unsafe.SliceData(k.v)))
		if at < lo || at+4*uintptr(len(v)) > lo+4*uintptr(len(k.v)) {
			continue
		}
		k.same(op)
		first := (at - lo) / 4
		return k.copy[first : first+uintptr(len(v)) : first+uintptr(len(v))]
	}
	d.moved["ids"] += int64(4 * len(v))
	return v
}

// find is the block that holds an address, nil for none. mu is held.
func (d *Device) find(addr uintptr) *block {
	i := sort.Search(len(d.blocks), func(i int) bool { return d.blocks[i].addr > addr }) - 1
	if i < 0 || addr >= d.blocks[i].addr+d.blocks[i].size {
		return nil
	}
	return d.blocks[i]
}
