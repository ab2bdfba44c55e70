// Package tensorbridge carries matrices between kernels and gorgonia.org/tensor,
// the tensor type at the edges of the engine (parameters, checkpoints, files), and
// lets tensor's own matrix product run on a kernels.Device. It also reads and
// writes the .npy files of reference data.
//
// tensor reaches into the memory of Go objects and refuses to start on a Go
// version that its pinned guard package does not know; the import below keeps the
// newer guard among the direct requirements of go.mod (see TestStarts).
package tensorbridge

import (
	"fmt"

	_ "go4.org/unsafe/assume-no-moving-gc" // keeps programs with tensor from panicking at start-up
	"gorgonia.org/tensor"

	"dorylus/kernels"
)

// View is d as a matrix that shares its memory. d holds float32 values and has
// one or two dimensions, a vector being one row; its rows lie one after the other
// or at equal distances, as in a slice of columns. Anything else (another type, a
// transpose that was not made real, a stepped slice) is an error: Copy it.
func View(d *tensor.Dense) (*kernels.Mat, error) {
	l, err := layoutOf(d)
	if err != nil {
		return nil, fmt.Errorf("view tensor %v of %v as a matrix: %w", d.Shape(), d.Dtype(), err)
	}
	if l.trans {
		return nil, fmt.Errorf("view tensor %v of %v as a matrix: its strides %v run down the columns; copy it", d.Shape(), d.Dtype(), d.Strides())
	}
	return l.mat, nil
}

// Copy is a host matrix without padding that holds the values of d, whatever its
// strides. d holds float32 values and has one or two dimensions.
func Copy(d *tensor.Dense) (*kernels.Mat, error) {
	rows, cols, err := sizes(d)
	if err != nil {
		return nil, fmt.Errorf("copy tensor %v of %v into a matrix: %w", d.Shape(), d.Dtype(), err)
	}
	m := kernels.FromSlice(rows, cols, make([]float32, rows*cols))
	if l, err := layoutOf(d); err == nil {
		l.copyTo(m)
		return m, nil
	}
	it := d.Iterator() // strides that are no matrix's: value by value
	data := d.Float32s()
	n := 0
	for i, err := it.Start(); err == nil; i, err = it.Next() {
		m.Host[n] = data[i]
		n++
	}
	if n != len(m.Host) {
		return nil, fmt.Errorf("copy tensor %v of %v into a matrix: its iterator gave %d values, want %d", d.Shape(), d.Dtype(), n, len(m.Host))
	}
	return m, nil
}

// Put queues the copy of d into dst, which may lie on any device. d has the shape
// of dst.
func Put(s kernels.Stream, dst *kernels.Mat, d *tensor.Dense) error {
	m, err := Copy(d)
	if err != nil {
		return err
	}
	if m.Rows != dst.Rows || m.Cols != dst.Cols {
		return fmt.Errorf("put tensor %v into a matrix of %d x %d: shapes differ", d.Shape(), dst.Rows, dst.Cols)
	}
	s.Put(dst, m.Host)
	return nil
}

// Get waits for s and returns a tensor of its own memory with the values of src,
// which may lie on any device.
func Get(s kernels.Stream, src *kernels.Mat) (*tensor.Dense, error) {
	if src.Rows == 0 || src.Cols == 0 {
		return nil, fmt.Errorf("get a tensor of %d x %d: tensors have no empty shapes", src.Rows, src.Cols)
	}
	data := make([]float32, src.Rows*src.Cols)
	s.Get(data, src)
	if err := s.Wait(); err != nil {
		return nil, fmt.Errorf("get a tensor of %d x %d: %w", src.Rows, src.Cols, err)
	}
	return tensor.New(tensor.WithShape(src.Rows, src.Cols), tensor.WithBacking(data)), nil
}

// Dense is m as a tensor that shares its memory. m lies in host memory and its
// rows without padding: a padded one is an error, Get copies it.
func Dense(m *kernels.Mat) (*tensor.Dense, error) {
	switch {
	case m.Rows == 0 || m.Cols == 0:
		return nil, fmt.Errorf("view a matrix of %d x %d as a tensor: tensors have no empty shapes", m.Rows, m.Cols)
	case m.Host == nil:
		return nil, fmt.Errorf("view a matrix of %d x %d as a tensor: it is not in host memory; get a copy", m.Rows, m.Cols)
	case m.Rows > 1 && m.Stride != m.Cols:
		return nil, fmt.Errorf("view a matrix of %d x %d as a tensor: its rows are %d apart; get a copy", m.Rows, m.Cols, m.Stride)
	}
	n := m.Rows * m.Cols
	return tensor.New(tensor.WithShape(m.Rows, m.Cols), tensor.WithBacking(m.Host[:n:n])), nil
}

// sizes are the rows and columns of d as a matrix.
func sizes(d *tensor.Dense) (rows, cols int, err error) {
	if d.Dtype() != tensor.Float32 {
		return 0, 0, fmt.Errorf("matrices hold float32")
	}
	if !d.IsNativelyAccessible() {
		return 0, 0, fmt.Errorf("its memory is not the host's")
	}
	switch s := d.Shape(); len(s) {
	case 1:
		return 1, s[0], nil
	case 2:
		return s[0], s[1], nil
	default:
		return 0, 0, fmt.Errorf("%d dimensions, want 1 or 2", len(s))
	}
}

// A layout is a tensor's memory as a matrix, or, if trans, as the transpose of the
// tensor.
type layout struct {
	mat   *kernels.Mat
	trans bool
}

// layoutOf reads the strides of d, which alone say how its values lie: the same
// for row-major, column-major, transposed and sliced tensors.
func layoutOf(d *tensor.Dense) (layout, error) {
	rows, cols, err := sizes(d)
	if err != nil {
		return layout{}, err
	}
	strides := d.Strides()
	down, right := cols, 1
	switch {
	case len(d.Shape()) == 1 && len(strides) == 1:
		right = strides[0]
	case len(strides) == 1 && rows == 1: // tensor's column-major rows and columns
		right = strides[0]
	case len(strides) == 1 && cols == 1:
		down = strides[0]
	case len(strides) == 2:
		down, right = strides[0], strides[1]
	default:
		return layout{}, fmt.Errorf("strides %v", strides)
	}
	data := d.Float32s()
	switch {
	case (right == 1 || cols == 1) && (down >= cols || rows == 1):
		return layout{mat: &kernels.Mat{Rows: rows, Cols: cols, Stride: max(down, cols), Host: data}}, nil
	case (down == 1 || rows == 1) && (right >= rows || cols == 1):
		return layout{mat: &kernels.Mat{Rows: cols, Cols: rows, Stride: max(right, rows), Host: data}, trans: true}, nil
	}
	return layout{}, fmt.Errorf("strides %v are no matrix's", strides)
}

// copyTo sets dst, in row-major order, to the tensor.
func (l layout) copyTo(dst *kernels.Mat) {
	if !l.trans {
		for r := range dst.Rows {
			copy(dst.Row(r), l.mat.Row(r))
		}
		return
	}
	for c := range dst.Cols {
		for r, v := range l.mat.Row(c) {
			dst.Host[r*dst.Stride+c] = v
		}
	}
}
