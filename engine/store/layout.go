package store

import (
	"fmt"
	"iter"
)

// Names of the files of a store. FORMAT.md says what each holds.
const (
	MetaFile = "meta.json"

	orderFile    = "order.npy"
	inPtrFile    = "in_indptr.npy"
	inColFile    = "in_indices.npy"
	inValFile    = "in_weights.npy"
	outPtrFile   = "out_indptr.npy"
	outColFile   = "out_indices.npy"
	outValFile   = "out_weights.npy"
	denseFile    = "features.npy"
	featPtrFile  = "features_indptr.npy"
	featColFile  = "features_indices.npy"
	featValFile  = "features_values.npy"
	labelsFile   = "labels.npy"
	multiPtrFile = "labels_indptr.npy"
	multiColFile = "labels_indices.npy"
	splitsFile   = "splits.npy"
	idsFile      = "ids.npy"
	idsStartFile = "ids_offsets.npy"
)

// Roles of a vertex in a split, the values of splits.npy.
const (
	roleNone  = 0
	roleTrain = 1
	roleVal   = 2
	roleTest  = 3
)

// array is one file to write: its shape, and the pieces of memory that make up
// its data.
type array struct {
	name, dtype string
	shape       []int
	pieces      iter.Seq[[]byte]
}

func newArray[T element](name string, data []T, shape ...int) array {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	return array{name, dtype[T](), shape, func(yield func([]byte) bool) { yield(bytesOf(data)) }}
}

// bytes is the size of the data.
func (a *array) bytes() int64 {
	n, _ := size(a.shape)
	return int64(n) * int64(width(a.dtype))
}

// width is the size of one value of a type that the store uses.
func width(dtype string) int { return int(dtype[2] - '0') }

// arrays lists what a store consists of on disk.
func (s *Store) arrays() ([]array, error) {
	n := s.Meta.Vertices
	if len(s.Order) != n || s.In == nil || s.In.Rows() != n {
		return nil, fmt.Errorf("a store of %d vertices has an order of %d", n, len(s.Order))
	}
	list := []array{
		newArray(orderFile, s.Order),
		newArray(inPtrFile, s.In.RowPtr),
		newArray(inColFile, s.In.Col),
	}
	if s.Meta.Weighted {
		list = append(list, newArray(inValFile, s.In.Val))
	}
	if !s.Meta.Symmetric {
		list = append(list, newArray(outPtrFile, s.Out.RowPtr), newArray(outColFile, s.Out.Col))
		if s.Meta.Weighted {
			list = append(list, newArray(outValFile, s.Out.Val))
		}
	}
	switch {
	case s.Dense != nil:
		list = append(list, denseArray(s))
	case s.Sparse != nil:
		list = append(list, newArray(featPtrFile, s.Sparse.RowPtr), newArray(featColFile, s.Sparse.Col))
		if s.Sparse.Val != nil {
			list = append(list, newArray(featValFile, s.Sparse.Val))
		}
	}
	if s.Labels != nil {
		list = append(list, newArray(labelsFile, s.Labels))
	}
	if s.Multi != nil {
		list = append(list, newArray(multiPtrFile, s.Multi.RowPtr), newArray(multiColFile, s.Multi.Col))
	}
	if len(s.Splits) > 0 {
		list = append(list, newArray(splitsFile, roles(s), len(s.Splits), n))
	}
	if s.IDs != nil {
		var blob []byte
		start := make([]int64, 1, n+1)
		for _, id := range s.IDs {
			blob = append(blob, id...)
			start = append(start, int64(len(blob)))
		}
		list = append(list, newArray(idsFile, blob), newArray(idsStartFile, start))
	}
	return list, nil
}

// denseArray is features.npy: rows padded with zeros to the stride of a device,
// so that they can be used in place when mapped.
func denseArray(s *Store) array {
	d := s.Dense
	stride := paddedStride(d.Cols)
	pad := bytesOf(make([]float32, stride-d.Cols))
	return array{denseFile, dtype[float32](), []int{d.Rows, stride}, func(yield func([]byte) bool) {
		for r := range d.Rows {
			if !yield(bytesOf(d.Row(r))) || !yield(pad) {
				return
			}
		}
	}}
}

// roles is the role of each vertex in each split, one split after the other.
func roles(s *Store) []uint8 {
	n := s.Meta.Vertices
	all := make([]uint8, len(s.Splits)*n)
	for i, sp := range s.Splits {
		row := all[i*n : (i+1)*n]
		for _, r := range sp.Train {
			row[r] = roleTrain
		}
		for _, r := range sp.Val {
			row[r] = roleVal
		}
		for _, r := range sp.Test {
			row[r] = roleTest
		}
	}
	return all
}
