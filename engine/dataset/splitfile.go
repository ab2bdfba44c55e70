package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
)

// splitFile is the JSON of Options.SplitFile. Either splits or the three lists at
// the top are given; vertices are indices in the source's own order.
type splitFile struct {
	Dataset  string      `json:"dataset"`
	Protocol string      `json:"protocol"`
	Splits   []splitJSON `json:"splits"`
	splitJSON
}

type splitJSON struct {
	Name  string  `json:"name"`
	Train []int64 `json:"train"`
	Val   []int64 `json:"val"`
	Valid []int64 `json:"valid"`
	Test  []int64 `json:"test"`
}

// readSplitFile reads splits over n vertices from JSON. Splits without a name are
// called "0", "1", ...
func readSplitFile(fsys fs.FS, name string, n int) ([]Split, error) {
	b, err := openUser(fsys, name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	data, err := b.bytes(1 << 32)
	if err != nil {
		return nil, err
	}
	return parseSplits(name, data, n)
}

func parseSplits(name string, data []byte, n int) ([]Split, error) {
	var f splitFile
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf(`read %s: byte %d: %w; it must look like {"splits": [{"train": [...], "val": [...], "test": [...]}]}`, name, dec.InputOffset(), err)
	}
	list := f.Splits
	if list == nil {
		list = []splitJSON{f.splitJSON}
	}
	var out []Split
	for i, s := range list {
		split := Split{Name: s.Name, rest: s.Test == nil}
		if split.Name == "" {
			split.Name = strconv.Itoa(i)
		}
		for r, ids := range [][]int64{s.Train, append(s.Val, s.Valid...), s.Test} {
			if err := takeIDs(split.role(r), ids, n); err != nil {
				return nil, fmt.Errorf("read %s: split %q: %s: %w", name, split.Name, roleNames[r], err)
			}
		}
		if len(split.Train) == 0 && len(split.Test) == 0 {
			return nil, fmt.Errorf("read %s: split %q: neither train nor test names a vertex", name, split.Name)
		}
		out = append(out, split)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read %s: it holds no split", name)
	}
	return out, nil
}

var roleNames = [...]string{"train", "val", "test"}

// takeIDs checks ids and stores them ascending.
func takeIDs(dst *[]int32, ids []int64, n int) error {
	out := make([]int32, len(ids))
	for i, v := range ids {
		if v < 0 || v >= int64(n) {
			return fmt.Errorf("entry %d: vertex %d is outside [0,%d); indices are in the data set's own order", i, v, n)
		}
		out[i] = int32(v)
	}
	slices.Sort(out)
	for i := 1; i < len(out); i++ {
		if out[i] == out[i-1] {
			return fmt.Errorf("vertex %d is listed twice", out[i])
		}
	}
	*dst = out
	return nil
}

// fillRest completes the splits whose source leaves the test vertices to be all
// others that have a label.
func fillRest(r *Raw) {
	for i := range r.Splits {
		s := &r.Splits[i]
		if !s.rest {
			continue
		}
		taken := make([]bool, r.N)
		for _, rows := range [][]int32{s.Train, s.Val} {
			for _, v := range rows {
				taken[v] = true
			}
		}
		for v, t := range taken {
			if !t && (!r.hasLabels() || r.labelled(v)) {
				s.Test = append(s.Test, int32(v))
			}
		}
		s.rest = false
	}
}
