package store

import (
	"fmt"

	"dorylus/kernels"
)

// Rows that lie less than readGap bytes apart are read together, in pieces of about
// readPiece bytes: a read of a few pages more costs less than a read more.
const (
	readGap   = 32 << 10
	readPiece = 1 << 20
)

// EachIn calls fn with the in-edges of the rows given, ascending: i is the index into
// rows. It reads from the files, whether or not the part has the rows. col and val (nil
// where the store has no weights) are valid until fn returns. It ends at the first
// error of fn.
func (p *Part) EachIn(rows []int32, fn func(i int, col []int32, val []float32) error) error {
	return p.each(p.matrices()[0], rows, fn)
}

// EachOut is EachIn for out-edges.
func (p *Part) EachOut(rows []int32, fn func(i int, col []int32, val []float32) error) error {
	if p.Out == p.In {
		return p.EachIn(rows, fn)
	}
	return p.each(p.matrices()[1], rows, fn)
}

// ReadDense is the dense features of the rows given, ascending; nil where the features
// are not dense. It reads from the file, whether or not the part has the rows.
func (p *Part) ReadDense(rows []int32) (*kernels.Mat, error) {
	if p.Dense == nil {
		return nil, nil
	}
	if err := p.ascend(rows); err != nil {
		return nil, fmt.Errorf("read features of %s: %w", p.Dir, err)
	}
	stride := p.Dense.Stride
	m := &kernels.Mat{Rows: len(rows), Cols: p.Dense.Cols, Stride: stride, Host: make([]float32, len(rows)*stride)}
	err := p.pieces([]string{denseFile}, len(rows), func(i int) (lo, hi int64) {
		lo = int64(rows[i]) * int64(stride)
		return lo, lo + int64(stride)
	}, func(i int, data [][]byte) error {
		copy(m.Host[i*stride:(i+1)*stride], sliceOf[float32](data[0]))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read features of %s: %w", p.Dir, err)
	}
	return m, nil
}

// ReadSparse is the sparse features of the rows given, ascending: a matrix of as many
// rows; nil where the features are not sparse. It reads from the files, whether or not
// the part has the rows.
func (p *Part) ReadSparse(rows []int32) (*kernels.CSR, error) {
	if p.Sparse == nil {
		return nil, nil
	}
	g := &kernels.CSR{Cols: p.Sparse.Cols, RowPtr: make([]int64, 1, len(rows)+1)}
	if p.Sparse.Val != nil {
		g.Val = []float32{}
	}
	mat := matrix{p.Sparse, featPtrFile, featColFile, ""}
	if p.Sparse.Val != nil {
		mat.val = featValFile
	}
	err := p.each(mat, rows, func(_ int, col []int32, val []float32) error {
		g.Col = append(g.Col, col...)
		if val != nil {
			g.Val = append(g.Val, val...)
		}
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
		return nil
	})
	return g, err
}

// Names are the names of vertices, by the user's index; nil where the source has none.
func (p *Part) Names(vertices []int32) ([]string, error) {
	if p.nameStart == nil {
		return nil, nil
	}
	names := make([]string, len(vertices))
	for i, v := range vertices {
		if v < 0 || int(v) >= p.Meta.Vertices {
			return nil, fmt.Errorf("read the name of vertex %d of %d in %s", v, p.Meta.Vertices, p.Dir)
		}
		lo, hi := p.nameStart[v], p.nameStart[v+1]
		if lo < 0 || lo > hi || hi > int64(len(p.nameText)) {
			return nil, fmt.Errorf("open store %s: %s: the name of vertex %d runs from %d to %d", p.Dir, idsStartFile, v, lo, hi)
		}
		names[i] = string(p.nameText[lo:hi])
	}
	return names, nil
}

// each reads rows of a matrix.
func (p *Part) each(g matrix, rows []int32, fn func(i int, col []int32, val []float32) error) error {
	err := p.ascend(rows)
	for i := 0; err == nil && i < len(rows); i++ {
		err = checkOffsets(g.csr, g.ptr, kernels.Span{Lo: int(rows[i]), Hi: int(rows[i]) + 1})
	}
	if err != nil {
		return fmt.Errorf("read rows of %s: %w", p.Dir, err)
	}
	names := []string{g.col}
	if g.val != "" {
		names = append(names, g.val)
	}
	stopped := false // by fn, whose error is handed on as it is
	err = p.pieces(names, len(rows), func(i int) (lo, hi int64) {
		return g.csr.RowPtr[rows[i]], g.csr.RowPtr[rows[i]+1]
	}, func(i int, data [][]byte) error {
		col := sliceOf[int32](data[0])
		if err := badRow(col, g.col, int(rows[i]), g.csr.Cols); err != nil {
			return err
		}
		var val []float32
		if len(data) > 1 {
			val = sliceOf[float32](data[1])
		}
		err := fn(i, col, val)
		stopped = err != nil
		return err
	})
	if err != nil && !stopped {
		return fmt.Errorf("read rows of %s: %w", p.Dir, err)
	}
	return err
}

// ascend checks a list of rows.
func (p *Part) ascend(rows []int32) error {
	before := int32(-1)
	for _, v := range rows {
		if v <= before || int(v) >= p.Meta.Vertices {
			return fmt.Errorf("row %d after row %d: want ascending ones in 0..%d", v, before, p.Meta.Vertices-1)
		}
		before = v
	}
	return nil
}

// pieces reads n spans of the same entries, of 4 bytes each, from every one of the
// files, and calls fn with the bytes of one span after the other. Spans ascend; those
// that lie near each other are read at once.
func (p *Part) pieces(names []string, n int, span func(i int) (lo, hi int64), fn func(i int, data [][]byte) error) error {
	const width = 4
	bufs, data := make([][]int64, len(names)), make([][]byte, len(names))
	for i := 0; i < n; {
		from, to := span(i)
		j := i + 1
		for ; j < n; j++ {
			lo, hi := span(j)
			if (lo-to)*width > readGap || (hi-from)*width > readPiece {
				break
			}
			to = hi
		}
		for k, name := range names {
			if err := p.read(name, &bufs[k], from*width, to*width); err != nil {
				return err
			}
		}
		for ; i < j; i++ {
			lo, hi := span(i)
			for k := range names {
				data[k] = bytesOf(bufs[k])[(lo-from)*width : (hi-from)*width]
			}
			if err := fn(i, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// read fills buf, made longer where that is needed, with bytes [lo,hi) of an array.
func (p *Part) read(name string, buf *[]int64, lo, hi int64) error {
	if need := int((hi - lo + 7) / 8); len(*buf) < need {
		*buf = make([]int64, need)
	}
	if lo == hi {
		return nil
	}
	f, err := p.open(name)
	if err != nil {
		return err
	}
	if _, err := f.ReadAt(bytesOf(*buf)[:hi-lo], p.starts[name]+lo); err != nil {
		return fmt.Errorf("%s: read %d bytes at %d: %w", name, hi-lo, lo, err)
	}
	return nil
}
