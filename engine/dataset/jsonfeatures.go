package dataset

import (
	"encoding/json"
	"fmt"
	"io"
	"path"

	"dorylus/kernels"
)

// readJSON reads {"vertex": [feature, feature, ...], ...}: for each vertex the numbers
// of the features that it has. Unlike other files of features it may leave vertices out.
func (f *featureTable) readJSON(b *blob, raw *Raw) error {
	text, err := b.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	dec := json.NewDecoder(text)
	at := func(err error) error {
		return fmt.Errorf(`read %s: byte %d: %w; it must look like {"vertex": [1, 5, 7], ...}`, b.name, dec.InputOffset(), cause(err))
	}
	if t, err := dec.Token(); err != nil {
		return at(err)
	} else if t != json.Delim('{') {
		return at(fmt.Errorf("it starts with %v", t))
	}
	m := &kernels.CSR{RowPtr: []int64{0}}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return at(err)
		}
		var cols []int32
		if err := dec.Decode(&cols); err != nil {
			return at(fmt.Errorf("vertex %q: %w", clip(key.(string)), err))
		}
		for _, c := range cols {
			if c < 0 {
				return at(fmt.Errorf("vertex %q: feature %d is negative", clip(key.(string)), c))
			}
			m.Cols = max(m.Cols, int(c)+1)
		}
		f.ids = append(f.ids, key.(string))
		m.Col = append(m.Col, cols...)
		m.RowPtr = append(m.RowPtr, int64(len(m.Col)))
	}
	if _, err := dec.Token(); err != nil {
		return at(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return at(fmt.Errorf("more text after the last vertex"))
	}
	if err := checkColumns(b.name, int64(m.Cols), int64(len(m.Col))); err != nil {
		return err
	}
	if f.ids == nil {
		return fmt.Errorf("read %s: it names no vertex", b.name)
	}
	f.sparse = m
	raw.noteMerged(path.Base(b.name), sortColumns(m))
	return nil
}
