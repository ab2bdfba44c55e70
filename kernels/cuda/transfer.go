package cuda

import "unsafe"

// upload queues a copy of host memory to to, in the order of the compute stream. host
// is read before upload returns.
func (x *runner) upload(to address, host []byte) error {
	for at := int64(0); at < int64(len(host)); at += x.stage.bytes {
		n := min(x.stage.bytes, int64(len(host))-at)
		p, err := x.stage.piece(x, n)
		if err != nil {
			return err
		}
		copy(p.host, host[at:])
		if err := x.compute.Upload(to+address(at), unsafe.Pointer(&p.host[0]), n); err != nil {
			return err
		}
	}
	return nil
}

// bytes is scratch memory that holds a copy of host; 0 for no bytes.
func (x *runner) bytes(host []byte) (address, error) {
	if len(host) == 0 {
		return 0, nil
	}
	a, err := x.scratch(int64(len(host)))
	if err != nil {
		return 0, err
	}
	return a, x.upload(a, host)
}

// fetch queues a copy of n bytes, at most a chunk, from the device; then gets them when
// the queue has run, before Wait returns.
func (x *runner) fetch(from address, n int64, then func(host []byte)) error {
	if n == 0 {
		return nil
	}
	p, err := x.stage.piece(x, n)
	if err != nil {
		return err
	}
	p.in.outs = append(p.in.outs, func() { then(p.host) })
	return x.compute.Download(unsafe.Pointer(&p.host[0]), from, n)
}

// bytesOf is the memory of a slice.
func bytesOf[E any](s []E) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(s[0]))
}

// floats is a piece as values.
func (p piece) floats() []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(p.host))), len(p.host)/4)
}

// A tile is a part of a matrix that fits a piece.
type tile struct{ r0, r1, c0, c1 int }

func (t tile) rows() int { return t.r1 - t.r0 }
func (t tile) cols() int { return t.c1 - t.c0 }

// tiles calls f for parts of a matrix of rows x cols, of at most values values: runs of
// whole rows, or parts of single rows where one is longer.
func tiles(rows, cols int, values int64, f func(tile) error) error {
	if cols == 0 {
		return nil
	}
	step, width := max(int(values/int64(cols)), 1), min(cols, int(values))
	for r := 0; r < rows; r += step {
		for c := 0; c < cols; c += width {
			if err := f(tile{r, min(r+step, rows), c, min(c+width, cols)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// at is the tile of a matrix.
func (m mat) at(t tile) mat {
	m = m.sub(t.r0, t.r1)
	m.p += address(4 * t.c0)
	m.cols = t.cols()
	return m
}

// moveUp copies a piece's host memory to its device memory, beside what the compute
// stream does, which waits for it.
func (x *runner) moveUp(p piece) error {
	if err := x.up.Upload(p.dev, unsafe.Pointer(&p.host[0]), int64(len(p.host))); err != nil {
		return err
	}
	if err := x.uploaded.Record(x.up); err != nil {
		return err
	}
	return x.compute.Wait(x.uploaded)
}

// moveBack copies a piece's device memory, as the compute stream leaves it, to its host
// memory; then runs when it is there.
func (x *runner) moveBack(p piece, then func()) error {
	if err := x.ready.Record(x.compute); err != nil {
		return err
	}
	if err := x.down.Wait(x.ready); err != nil {
		return err
	}
	p.in.outs = append(p.in.outs, then)
	return x.down.Download(unsafe.Pointer(&p.host[0]), p.dev, int64(len(p.host)))
}

// moveIn sets dst to what pack writes, tile by tile: row(r) are the values of row r.
func (x *runner) moveIn(dst mat, row func(r int) []float32) error {
	return tiles(dst.rows, dst.cols, x.stage.bytes/4, func(t tile) error {
		p, err := x.stage.piece(x, 4*int64(t.rows())*int64(t.cols()))
		if err != nil {
			return err
		}
		values := p.floats()
		for r := t.r0; r < t.r1; r++ {
			copy(values[(r-t.r0)*t.cols():], row(r)[t.c0:t.c1])
		}
		if err := x.moveUp(p); err != nil {
			return err
		}
		return x.copyMat(dst.at(t), mat{p.dev, int64(t.cols()), t.rows(), t.cols()})
	})
}

// moveOut writes src to the host's row(r), before Wait returns.
func (x *runner) moveOut(row func(r int) []float32, src mat) error {
	return tiles(src.rows, src.cols, x.stage.bytes/4, func(t tile) error {
		p, err := x.stage.piece(x, 4*int64(t.rows())*int64(t.cols()))
		if err != nil {
			return err
		}
		if err := x.copyMat(mat{p.dev, int64(t.cols()), t.rows(), t.cols()}, src.at(t)); err != nil {
			return err
		}
		return x.moveBack(p, func() {
			values := p.floats()
			for r := t.r0; r < t.r1; r++ {
				copy(row(r)[t.c0:t.c1], values[(r-t.r0)*t.cols():])
			}
		})
	})
}

// copyMat queues dst = src.
func (x *runner) copyMat(dst, src mat) error {
	return x.each("dk_copy", dst.rows, dst.cols, dst, src, int64(dst.rows), int32(dst.cols), shiftOf(dst.cols))
}

// packedRows are the rows of cols values each of a slice.
func packedRows(v []float32, cols int) func(int) []float32 {
	return func(r int) []float32 { return v[r*cols : (r+1)*cols] }
}
