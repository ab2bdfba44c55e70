package cuda

import (
	"fmt"
	"sort"
	"sync"

	"dorylus/kernels"
)

// Bounds of rows by their number of edges, as csrc/cuda/README.md has them. A row's bits
// depend on which side of a bound it is on.
const (
	wideRow   = 32   // DK_WIDE: from here on a warp a row, where the matrix is narrow
	longRow   = 4096 // DK_LONG: from here on in chunks
	edgeChunk = 2048 // DK_CHUNK
	longPart  = 512  // DK_GAT_LONG, DK_MAX_LONG: above, in chunks
	partSize  = 256  // DK_GAT_CHUNK, DK_MAX_CHUNK
)

// csr is a CSR on the device. col and val are 0 where there are no edges, val also
// where there are no values.
type csr struct {
	rowptr, col, val address
	perm             address  // of a transpose: the place of each of its edges in the graph
	long             longRows // for SpMM: of longRow edges or more
	parts            longRows // for attention and maximum: of more than longPart edges
	wide             rowList  // of wideRow edges or more, but not long
}

// graph is a CSR that a device has loaded.
type graph struct {
	dev    *Device
	host   *kernels.CSR
	on     csr
	blocks []address

	once  sync.Once
	host2 *kernels.CSR // the transpose, from the first SpMMT on
	perm  []int64
	back  *csr // on the device; the worker's
}

// Rows implements kernels.Graph.
func (g *graph) Rows() int { return g.host.Rows() }

// Cols implements kernels.Graph.
func (g *graph) Cols() int { return g.host.Cols }

// Edges implements kernels.Graph.
func (g *graph) Edges() int { return g.host.Edges() }

// rowList are row numbers, ascending, on the host and on the device.
type rowList struct {
	rows []int32
	on   address
}

// cut is the part [i0,i1) of the list that lies in rows.
func (l rowList) cut(rows kernels.Span) (i0, i1 int) {
	at := func(r int) int { return sort.Search(len(l.rows), func(i int) bool { return int(l.rows[i]) >= r }) }
	return at(rows.Lo), at(rows.Hi)
}

// longRows are rows that are worked on in chunks: list, and the number of chunks before
// each row and after the last.
type longRows struct {
	rowList
	chunks   []int64
	chunksOn address
}

// count is the number of chunks of rows [i0,i1) of the list.
func (l longRows) count(i0, i1 int) int64 {
	if i0 == i1 {
		return 0
	}
	return l.chunks[i1] - l.chunks[i0]
}

// rowsBetween are the rows of lo to hi-1 edges.
func rowsBetween(rowptr []int64, lo, hi int64) []int32 {
	var rows []int32
	for v := range len(rowptr) - 1 {
		if n := rowptr[v+1] - rowptr[v]; n >= lo && n < hi {
			rows = append(rows, int32(v))
		}
	}
	return rows
}

const anyDegree = 1 << 62

// longRowsOf are the rows of least edges or more, in chunks of size.
func longRowsOf(rowptr []int64, least, size int64) longRows {
	l := longRows{rowList: rowList{rows: rowsBetween(rowptr, least, anyDegree)}, chunks: []int64{0}}
	for _, v := range l.rows {
		l.chunks = append(l.chunks, l.chunks[len(l.chunks)-1]+over(rowptr[v+1]-rowptr[v], size))
	}
	if len(l.rows) == 0 {
		l.chunks = nil
	}
	return l
}

// Load implements kernels.Device. The device keeps g's slices, for the transpose that
// the first SpMMT wants.
func (d *Device) Load(g *kernels.CSR) (kernels.Graph, error) {
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("%s: load: %w", d.name, err)
	}
	r := &graph{dev: d, host: g}
	r.on = d.csrOf(g)
	err := d.do(func(x *runner) error {
		err := r.bring(x, &r.on, g, nil)
		if err != nil {
			r.release()
		}
		return err
	}, "load a graph of %d rows, %d columns and %d edges", g.Rows(), g.Cols, g.Edges())
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.graphs[r] = struct{}{}
	return r, nil
}

// csrOf is the host's part of a csr.
func (d *Device) csrOf(g *kernels.CSR) csr {
	return csrCut(g, d.opt.Cut.Wide, d.opt.Cut.Long)
}

// csrCut is it with rows that are wide and long from so many edges on.
func csrCut(g *kernels.CSR, wide, long int64) csr {
	return csr{
		long:  longRowsOf(g.RowPtr, long, edgeChunk),
		parts: longRowsOf(g.RowPtr, longPart+1, partSize),
		wide:  rowList{rows: rowsBetween(g.RowPtr, wide, long)},
	}
}

// bring copies a CSR to the device.
func (r *graph) bring(x *runner, c *csr, g *kernels.CSR, perm []int64) error {
	for _, a := range []struct {
		to   *address
		data []byte
		what string
	}{
		{&c.rowptr, bytesOf(g.RowPtr), "the offsets"}, {&c.col, bytesOf(g.Col), "the columns"}, {&c.val, bytesOf(g.Val), "the values"},
		{&c.perm, bytesOf(perm), "the permutation"}, {&c.wide.on, bytesOf(c.wide.rows), "the rows of many edges"},
		{&c.long.on, bytesOf(c.long.rows), "the longest rows"}, {&c.long.chunksOn, bytesOf(c.long.chunks), "the longest rows' chunks"},
		{&c.parts.on, bytesOf(c.parts.rows), "the long rows"}, {&c.parts.chunksOn, bytesOf(c.parts.chunks), "the long rows' chunks"},
	} {
		if len(a.data) == 0 {
			continue
		}
		block, err := x.pool.get(x.c, int64(len(a.data)), fmt.Sprintf("%s of a graph of %d rows and %d edges", a.what, g.Rows(), g.Edges()))
		if err != nil {
			return err
		}
		r.blocks = append(r.blocks, block)
		*a.to = block
		if err := x.upload(block, a.data); err != nil {
			return err
		}
	}
	return nil
}

func (r *graph) release() {
	for _, b := range r.blocks {
		r.dev.pool.put(b)
	}
	r.blocks = nil
}

// Unload implements kernels.Device; nil does nothing.
func (d *Device) Unload(g kernels.Graph) {
	if g == nil {
		return
	}
	r, ok := g.(*graph)
	d.mu.Lock()
	if ok {
		_, ok = d.mu.graphs[r]
		delete(d.mu.graphs, r)
	}
	d.mu.Unlock()
	if !ok {
		panic(&kernels.ShapeError{Op: "Unload", Msg: fmt.Sprintf("a graph of %d rows that %s does not hold", g.Rows(), d.name)})
	}
	r.release()
}

// transpose makes the host's part of the transpose, once.
func (r *graph) transpose() {
	r.once.Do(func() {
		r.host2, r.perm = transposed(r.host)
	})
}

// backward is the transpose on the device. transpose has been called.
func (r *graph) backward(x *runner) (*csr, error) {
	if r.back != nil {
		return r.back, nil
	}
	c := r.dev.csrOf(r.host2)
	before := len(r.blocks)
	if err := r.bring(x, &c, r.host2, r.perm); err != nil {
		for _, b := range r.blocks[before:] {
			x.pool.put(b)
		}
		r.blocks = r.blocks[:before]
		return nil, fmt.Errorf("bring the graph's transpose to the device: %w", err)
	}
	r.back = &c
	r.perm = nil
	r.host2 = &kernels.CSR{Cols: r.host2.Cols, RowPtr: r.host2.RowPtr} // the rest is on the device
	return r.back, nil
}

// transposed is the transpose of g without values, and the place of each of its edges
// in g.
func transposed(g *kernels.CSR) (*kernels.CSR, []int64) {
	t := &kernels.CSR{Cols: g.Rows(), RowPtr: make([]int64, g.Cols+1), Col: make([]int32, len(g.Col))}
	for _, c := range g.Col {
		t.RowPtr[c+1]++
	}
	for c := range g.Cols {
		t.RowPtr[c+1] += t.RowPtr[c]
	}
	next, perm := append([]int64(nil), t.RowPtr...), make([]int64, len(g.Col))
	for v := range g.Rows() {
		for e := g.RowPtr[v]; e < g.RowPtr[v+1]; e++ {
			c := g.Col[e]
			t.Col[next[c]], perm[next[c]] = int32(v), e
			next[c]++
		}
	}
	return t, perm
}
