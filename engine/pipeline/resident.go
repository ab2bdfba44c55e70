package pipeline

import (
	"fmt"

	"dorylus/kernels"
)

// What ops read lies on the device. Where the host can address the device's memory,
// matrices of the host's own are as good, and nothing is copied; elsewhere they are put
// there once, before the first epoch, and so are the lists of rows and labels that the
// ops of every epoch are given.

// addressable says whether the host can address the memory of dev.
func addressable(dev kernels.Device) (bool, error) {
	m, err := dev.Alloc(1, 1)
	if err != nil {
		return false, err
	}
	defer dev.Free(m)
	return m.Host != nil, nil
}

// put is a matrix of the host as ops may read it; nil for nil. close frees it.
func (in *inputs) put(m *kernels.Mat) (*kernels.Mat, error) {
	if m == nil || in.hosted {
		return m, nil
	}
	d, err := in.alloc(kernels.Other, m.Rows, m.Cols)
	if err != nil {
		return nil, fmt.Errorf("put %d x %d values on %s: %w", m.Rows, m.Cols, in.dev.Name(), err)
	}
	in.stream.Copy(d, m)
	return d, in.stream.Wait()
}

// putAll is put for several.
func (in *inputs) putAll(ms []*kernels.Mat) ([]*kernels.Mat, error) {
	out := make([]*kernels.Mat, len(ms))
	for i, m := range ms {
		var err error
		if out[i], err = in.put(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keep has the device hold a list that many ops are given, until close.
func (in *inputs) keep(lists ...[]int32) error {
	k, ok := in.dev.(kernels.Keeper)
	if !ok {
		return nil
	}
	for _, v := range lists {
		if len(v) == 0 {
			continue
		}
		if err := k.Keep(v); err != nil {
			return fmt.Errorf("keep a list of %d rows: %w", len(v), err)
		}
		in.lists = append(in.lists, v)
	}
	return nil
}

// column is a vector of one value per row; nil for nil.
func (in *inputs) column(v []float32) (*kernels.Mat, error) {
	if v == nil {
		return nil, nil
	}
	return in.put(&kernels.Mat{Rows: len(v), Cols: 1, Stride: 1, Host: v})
}

// free gives back a matrix of alloc or put before close does.
func (in *inputs) free(m *kernels.Mat) {
	for i, o := range in.owned {
		if o == m {
			in.dev.Free(m)
			in.owned = append(in.owned[:i], in.owned[i+1:]...)
			return
		}
	}
}
