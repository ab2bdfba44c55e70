package cuda

import (
	"fmt"
	"unsafe"

	"dorylus/kernels/cuda/internal/watch"
)

// mat is a matrix of the device, as it was when an op was queued. As an argument it is
// two: the address and, as int64, the stride. The zero mat is null, with stride 0.
type mat struct {
	p          address
	ld         int64
	rows, cols int
}

// alone is a matrix's address without its stride, as an argument.
func (m mat) alone() address { return m.p }

// sub is rows [lo,hi).
func (m mat) sub(lo, hi int) mat {
	m.p += address(int64(lo) * m.ld * 4)
	m.rows = hi - lo
	return m
}

// on16 says that v4, g, w and c forms can read m: a null matrix never hinders.
func (m mat) on16() bool { return m.p%16 == 0 && m.ld%4 == 0 }

func aligned(ms ...mat) bool {
	for _, m := range ms {
		if !m.on16() {
			return false
		}
	}
	return true
}

// list is an int32 slice of the host as an argument: the address at which entry 0 would
// lie. Only entries [lo,hi) are there. A nil slice is null.
type list struct {
	v      []int32
	lo, hi int
}

type listKey struct {
	p      *int32
	lo, hi int
}

// epi is an epilogue as the last six arguments of a kernel (DK_EPI).
type epi struct {
	bias mat
	mode int32
	ids  list
	key  uint64
	drop uint64 // the threshold
	keep float32
}

// What DK_EPI's mode has besides the activation: dropout, and from a bit on the column of
// the whole row at which the output begins.
const (
	dropMode    = 256
	firstColumn = 9
)

// launch starts a kernel over a grid of blocks of 256 threads; no blocks: it does
// nothing. An argument is an address, mat, list, epi, int32, int64, uint64, float32, or
// a bool as int32.
func (x *runner) launch(kernel string, blocks int64, args ...any) error {
	if blocks == 0 {
		return nil
	}
	if blocks > 1<<31-1 {
		return fmt.Errorf("launch kernel %s: %d blocks, at most %d can be launched", kernel, blocks, 1<<31-1)
	}
	x.boxes, x.letters = x.boxes[:0], x.letters[:0]
	for _, a := range args {
		if err := x.box(a); err != nil {
			return err
		}
	}
	f, err := x.function(kernel)
	if err != nil {
		return err
	}
	if watch.Launch != nil {
		watch.Launch(kernel, string(x.letters))
	}
	return f.Launch(x.compute, int(blocks), blockThreads, 0, x.boxes)
}

func (x *runner) box(arg any) error {
	add := func(letter byte, v uint64) {
		x.boxes = append(x.boxes, v)
		x.letters = append(x.letters, letter)
	}
	switch a := arg.(type) {
	case address:
		add('p', uint64(a))
	case mat:
		add('p', uint64(a.p))
		add('l', uint64(a.ld))
	case list:
		p, err := x.list(a)
		if err != nil {
			return err
		}
		add('p', uint64(p))
	case epi:
		ids, err := x.list(a.ids)
		if err != nil {
			return err
		}
		add('p', uint64(a.bias.p))
		add('i', uint64(uint32(a.mode)))
		add('p', uint64(ids))
		add('u', a.key)
		add('u', a.drop)
		add('f', floatBox(a.keep))
	case int32:
		add('i', uint64(uint32(a)))
	case bool:
		v := uint64(0)
		if a {
			v = 1
		}
		add('i', v)
	case int64:
		add('l', uint64(a))
	case uint64:
		add('u', a)
	case float32:
		add('f', floatBox(a))
	default:
		return fmt.Errorf("argument %d of a kernel is a %T, which no kernel takes", len(x.letters), arg)
	}
	return nil
}

func floatBox(f float32) uint64 { return uint64(*(*uint32)(unsafe.Pointer(&f))) }

func (x *runner) function(name string) (function, error) {
	if f := x.functions[name]; f != nil {
		return f, nil
	}
	f, err := x.module.Function(name)
	if err != nil {
		return nil, err
	}
	x.functions[name] = f
	return f, nil
}

// each launches an elementwise kernel over rows x cols; shiftOf(cols) is its argument
// shift, where it has one.
func (x *runner) each(kernel string, rows, cols int, args ...any) error {
	if rows == 0 || cols == 0 {
		return nil
	}
	blocks := over(int64(rows)<<shiftOf(cols), blockThreads)
	return x.launch(kernel, min(blocks, 16*int64(max(x.d.info.Multiprocessor, 1))), args...)
}

// shiftOf is log2 of the lanes that share a row of an elementwise kernel.
func shiftOf(cols int) int32 {
	shift := int32(0)
	for shift < 5 && 1<<shift < cols {
		shift++
	}
	return shift
}

// blockThreads is DK_THREADS.
const blockThreads = 256

// over is a/b, rounded up.
func over(a, b int64) int64 { return (a + b - 1) / b }
