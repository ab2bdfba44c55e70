package store

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"dorylus/kernels"
)

// rowBuffer bounds what RowFile writes at once.
const rowBuffer = 1 << 20

// RowFile is a file of rows of equal width that come in any order: what is too much for
// memory is put where it belongs, and mapped once it is complete.
type RowFile struct {
	f     *os.File
	start int64
	rows  int
	width int    // bytes of a row
	data  []byte // all of the file
	heap  bool   // data is no mapping
}

// NewRowFile makes f a file of rows behind a header, whose length is a multiple of 64.
// f stays the caller's, open for reading and writing.
func NewRowFile(f *os.File, header []byte, rows, width int) (*RowFile, error) {
	if rows < 0 || width < 1 || len(header)%npyAlign != 0 || !littleEndian() {
		return nil, fmt.Errorf("a file of %d rows of %d bytes behind %d cannot be made on this machine", rows, width, len(header))
	}
	r := &RowFile{f: f, start: int64(len(header)), rows: rows, width: width}
	_, err := f.WriteAt(header, 0)
	if err == nil {
		err = f.Truncate(r.size())
	}
	return r, err
}

func (r *RowFile) size() int64 { return r.start + int64(r.rows)*int64(r.width) }

// PutFloats writes row i of m as row at[i].
func (r *RowFile) PutFloats(at []int32, m *kernels.Mat) error {
	if len(at) != m.Rows || 4*m.Cols != r.width {
		return fmt.Errorf("%d rows of %d values for %d rows of %d bytes", m.Rows, m.Cols, len(at), r.width)
	}
	return r.put(at, func(i int) []byte { return bytesOf(m.Row(i)) })
}

// PutBytes writes the rows that lie one behind the other in data, row i as row at[i].
func (r *RowFile) PutBytes(at []int32, data []byte) error {
	if len(data) != len(at)*r.width {
		return fmt.Errorf("%d bytes for %d rows of %d bytes", len(data), len(at), r.width)
	}
	return r.put(at, func(i int) []byte { return data[i*r.width : (i+1)*r.width] })
}

// put writes runs of rows at once.
func (r *RowFile) put(at []int32, row func(int) []byte) error {
	order := make([]int, len(at))
	for i, v := range at {
		if v < 0 || int(v) >= r.rows {
			return fmt.Errorf("row %d of %d", v, r.rows)
		}
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(at[i], at[j]) })
	buf := make([]byte, 0, max(r.width, min(rowBuffer, len(at)*r.width)))
	for k := 0; k < len(order); {
		first := at[order[k]]
		buf = buf[:0]
		for n := int32(0); k < len(order) && at[order[k]] == first+n && len(buf)+r.width <= cap(buf); n++ {
			buf = append(buf, row(order[k])...)
			k++
		}
		if _, err := r.f.WriteAt(buf, r.start+int64(first)*int64(r.width)); err != nil {
			return err
		}
	}
	return nil
}

// Bytes are all rows, read-only, until Close.
func (r *RowFile) Bytes() ([]byte, error) {
	if r.data == nil {
		data, err := mapFile(r.f, r.size())
		if err != nil {
			data, r.heap = alignedBytes(r.size()), true
			if _, err := io.ReadFull(io.NewSectionReader(r.f, 0, r.size()), data); err != nil {
				return nil, err
			}
		}
		r.data = data
	}
	return r.data[r.start:], nil
}

// Floats are all rows as a matrix, read-only, until Close.
func (r *RowFile) Floats() (*kernels.Mat, error) {
	data, err := r.Bytes()
	if err != nil {
		return nil, err
	}
	return kernels.FromSlice(r.rows, r.width/4, sliceOf[float32](data)), nil
}

// Close ends the mapping; the file stays.
func (r *RowFile) Close() error {
	data := r.data
	r.data = nil
	if data == nil || r.heap {
		return nil
	}
	return unmapFile(data)
}
