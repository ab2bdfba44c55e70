package inproc

import (
	"fmt"
	"slices"
	"sync"

	"dorylus/kernels"
)

// room keeps matrices of one device for rows on their way. They are allocated when there
// is none that would do, and given back to the device in the end, so that a run that has
// found its pace allocates no more.
type room struct {
	dev  kernels.Device
	most int64 // bytes above which what is spare goes before more is allocated

	mu    sync.Mutex
	spare []*kernels.Mat                // by size, ascending
	out   map[*kernels.Mat]*kernels.Mat // by what was handed out
	held  int64
}

func newRoom(dev kernels.Device, most int64) *room {
	return &room{dev: dev, most: most, out: make(map[*kernels.Mat]*kernels.Mat)}
}

// most is how much larger than what is wanted a matrix may be that is used for it.
const most = 4

// take is a matrix without padding, its contents undefined.
func (r *room) take(rows, cols int) (*kernels.Mat, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := rows * cols
	at, _ := slices.BinarySearchFunc(r.spare, n, func(m *kernels.Mat, n int) int { return m.Rows - n })
	var whole *kernels.Mat
	if at < len(r.spare) && r.spare[at].Rows <= most*n {
		whole = r.spare[at]
		r.spare = slices.Delete(r.spare, at, at+1)
	} else {
		r.shrink(4 * int64(n))
		var err error
		if whole, err = r.dev.Alloc(n, 1); err != nil {
			return nil, fmt.Errorf("allocate %d x %d for rows on their way: %w", rows, cols, err)
		}
		r.held += 4 * int64(n)
	}
	m := kernels.Unpadded(whole, rows, cols)
	r.out[m] = whole
	return m, nil
}

// shrink makes room for n bytes more, as far as what is spare allows it: the smallest go
// first, which are the least likely to do.
func (r *room) shrink(n int64) {
	for len(r.spare) > 0 && r.held+n > r.most {
		m := r.spare[0]
		r.spare = r.spare[1:]
		r.held -= 4 * int64(m.Rows)
		r.dev.Free(m)
	}
}

// put takes back what take has given; nil does nothing.
func (r *room) put(m *kernels.Mat) {
	if m == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	whole := r.out[m]
	if whole == nil {
		panic(&kernels.ShapeError{Op: "Free", Msg: fmt.Sprintf("a matrix of %d x %d that is not out: freed twice, or of another device", m.Rows, m.Cols)})
	}
	delete(r.out, m)
	at, _ := slices.BinarySearchFunc(r.spare, whole.Rows, func(m *kernels.Mat, n int) int { return m.Rows - n })
	r.spare = slices.Insert(r.spare, at, whole)
}

// close gives all memory back, that of matrices which are still out as well.
func (r *room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.spare {
		r.dev.Free(m)
	}
	for _, m := range r.out {
		r.dev.Free(m)
	}
	r.spare = nil
	clear(r.out)
}
