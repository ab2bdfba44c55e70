package cuda

import (
	"fmt"
	"sort"
	"unsafe"

	"dorylus/kernels"
)

// kept is a list of which the device has a copy.
type kept struct {
	v     []int32
	block address
	n     int // Keeps
	adds  map[listKey]*addPlan
	// Of a list that is a CSR's columns: the row offsets that came with it.
	offsets map[offsetKey]address
}

type offsetKey struct {
	p *int64
	n int
}

func placeOf(v []int32) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(v))) }

// after is the index of the first kept list that begins after p. mu is held.
func (d *Device) after(p uintptr) int {
	return sort.Search(len(d.mu.kept), func(i int) bool { return placeOf(d.mu.kept[i].v) > p })
}

// begins is the kept list that begins where v does, nil for none. mu is held.
func (d *Device) begins(v []int32) *kept {
	if i := d.after(placeOf(v)); i > 0 && placeOf(d.mu.kept[i-1].v) == placeOf(v) {
		return d.mu.kept[i-1]
	}
	return nil
}

// holding is the kept list that v is a part of, and where it begins in it.
func (d *Device) holding(v []int32) (k *kept, at int) {
	if len(v) == 0 {
		return nil, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := placeOf(v)
	for i := d.after(p) - 1; i >= 0; i-- {
		k := d.mu.kept[i]
		if at := int(p-placeOf(k.v)) / 4; at+len(v) <= len(k.v) {
			return k, at
		}
		if i == 0 || placeOf(d.mu.kept[i-1].v)+uintptr(4*len(d.mu.kept[i-1].v)) <= p {
			break
		}
	}
	return nil, 0
}

// Keep implements kernels.Keeper.
func (d *Device) Keep(v []int32) error {
	if len(v) == 0 {
		return nil
	}
	if done, err := d.keepAgain(v); done || err != nil {
		return err
	}
	var block address
	err := d.do(func(x *runner) (err error) {
		if block, err = x.pool.get(x.c, 4*int64(len(v)), fmt.Sprintf("a list of %d values", len(v))); err != nil {
			return err
		}
		if err = x.upload(block, bytesOf(v)); err == nil {
			return nil
		}
		x.pool.put(block)
		return err
	}, "keep %d values", len(v))
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.begins(v); k != nil { // somebody else was faster
		d.pool.put(block)
		k.n++
		return nil
	}
	i := d.after(placeOf(v))
	d.mu.kept = append(d.mu.kept, nil)
	copy(d.mu.kept[i+1:], d.mu.kept[i:])
	d.mu.kept[i] = &kept{v: v, block: block, n: 1, adds: map[listKey]*addPlan{}, offsets: map[offsetKey]address{}}
	return nil
}

// keepAgain counts one more Keep of a list that is kept.
func (d *Device) keepAgain(v []int32) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.begins(v)
	if k == nil {
		return false, nil
	}
	if len(k.v) != len(v) {
		return false, fmt.Errorf("%s: keep %d values, of which %d are kept already", d.name, len(v), len(k.v))
	}
	k.n++
	return true, nil
}

// Drop implements kernels.Keeper.
func (d *Device) Drop(v []int32) {
	if len(v) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.begins(v)
	if k == nil || len(k.v) != len(v) {
		panic(&kernels.ShapeError{Op: "Drop", Msg: fmt.Sprintf("a list of %d values that %s does not keep", len(v), d.name)})
	}
	if k.n--; k.n > 0 {
		return
	}
	i := d.after(placeOf(v)) - 1
	d.mu.kept = append(d.mu.kept[:i], d.mu.kept[i+1:]...)
	d.pool.put(k.block)
	for _, a := range k.adds {
		a.free(d.pool)
	}
	for _, a := range k.offsets {
		d.pool.put(a)
	}
}

// offsets is where the device has the row offsets of t: a copy for this op, or, where they
// are to be kept, one that is as long as all of t's columns are.
func (x *runner) offsets(t kernels.CSR, keep bool) (address, error) {
	k, at := x.d.holding(t.Col)
	if !keep || k == nil || at > 0 || len(k.v) != len(t.Col) {
		return x.bytes(bytesOf(t.RowPtr))
	}
	key := offsetKey{&t.RowPtr[0], len(t.RowPtr)}
	if a, ok := k.offsets[key]; ok {
		return a, nil
	}
	a, err := x.pool.get(x.c, 8*int64(len(t.RowPtr)), "row offsets")
	if err != nil {
		return 0, err
	}
	if err := x.upload(a, bytesOf(t.RowPtr)); err != nil {
		x.pool.put(a)
		return 0, err
	}
	k.offsets[key] = a
	return a, nil
}

// list is where entry 0 of l lies on the device: of a copy that is kept, or of one that
// is made for this op, which has the entries [lo,hi) alone, at their places.
func (x *runner) list(l list) (address, error) {
	if l.v == nil || l.hi <= l.lo {
		return 0, nil
	}
	part := l.v[l.lo:l.hi]
	if k, at := x.d.holding(part); k != nil && at >= l.lo {
		return k.block + address(4*(at-l.lo)), nil
	}
	key := listKey{&part[0], l.lo, l.hi}
	if a, ok := x.uploads[key]; ok {
		return a, nil
	}
	a, err := x.scratch(4 * int64(l.hi))
	if err != nil {
		return 0, err
	}
	if err := x.upload(a+address(4*l.lo), bytesOf(part)); err != nil {
		return 0, err
	}
	x.uploads[key] = a
	return a, nil
}
