package prepare

import (
	"fmt"
	"slices"
	"strings"

	"dorylus/engine/dataset"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// countClasses is the number of classes: names given, or the largest label + 1.
func countClasses(raw *dataset.Raw) (int, error) {
	if m := raw.Multi; m != nil {
		if m.Rows() != raw.N {
			return 0, fmt.Errorf("the classes of %d vertices for %d vertices", m.Rows(), raw.N)
		}
		if err := m.Validate(); err != nil {
			return 0, fmt.Errorf("classes: %w", err)
		}
		return m.Cols, nil
	}
	if raw.Labels == nil {
		return len(raw.Classes), nil
	}
	if len(raw.Labels) != raw.N {
		return 0, fmt.Errorf("%d labels for %d vertices", len(raw.Labels), raw.N)
	}
	top, at := int32(-1), 0
	for v, c := range raw.Labels {
		if c < -1 {
			return 0, fmt.Errorf("vertex %s has label %d: labels are 0 and up, or -1 for none", name(raw, v), c)
		}
		if c > top {
			top, at = c, v
		}
	}
	if n := len(raw.Classes); n > 0 {
		if int(top) >= n {
			return 0, fmt.Errorf("vertex %s has label %d, but there are %d classes, 0..%d", name(raw, at), top, n, n-1)
		}
		return n, nil
	}
	return int(top) + 1, nil
}

// name is the user's name of vertex v.
func name(raw *dataset.Raw, v int) string {
	if raw.IDs != nil {
		return fmt.Sprintf("%q", raw.IDs[v])
	}
	return fmt.Sprint(v)
}

// known says that the classes of vertex v of multi-label data are known.
func known(raw *dataset.Raw, v int32) bool { return raw.Labelled == nil || raw.Labelled[v] }

// multiKnown stands in for labels when a split of multi-label data is drawn.
func multiKnown(raw *dataset.Raw, spec string) ([]int32, error) {
	if !strings.HasPrefix(spec, "random:") {
		return nil, fmt.Errorf("split %q: vertices of this data may have several classes, so none can be drawn per class: use random:60/20/20", spec)
	}
	labels := make([]int32, raw.N)
	for v := range labels {
		if !known(raw, int32(v)) {
			labels[v] = -1
		}
	}
	return labels, nil
}

// gatherMulti puts the classes of multi-label data into store order.
func gatherMulti(s *store.Store, raw *dataset.Raw) {
	m := raw.Multi
	s.Multi = &kernels.CSR{Cols: m.Cols, RowPtr: make([]int64, 1, raw.N+1), Col: make([]int32, 0, len(m.Col))}
	s.Labels = make([]int32, raw.N)
	for r, v := range s.Order {
		s.Multi.Col = append(s.Multi.Col, m.Col[m.RowPtr[v]:m.RowPtr[v+1]]...)
		s.Multi.RowPtr = append(s.Multi.RowPtr, int64(len(s.Multi.Col)))
		if !known(raw, v) {
			s.Labels[r] = -1
		}
	}
}

// gatherSplits makes the splits in store rows and says where they come from.
func gatherSplits(s *store.Store, raw *dataset.Raw, classes int, opt Options) (spec string, err error) {
	splits := raw.Splits
	switch {
	case opt.Split != "":
		spec = opt.Split
		labels := raw.Labels
		if raw.Multi != nil {
			if labels, err = multiKnown(raw, opt.Split); err != nil {
				return "", err
			}
		}
		made, err := dataset.MakeSplit(opt.Split, labels, classes, opt.Seed)
		if err != nil {
			return "", err
		}
		splits = []dataset.Split{made}
	case len(splits) > 0:
		spec = "file"
	}
	role := make([]byte, raw.N)
	for _, sp := range splits {
		clear(role)
		out := dataset.Split{Name: sp.Name}
		for i, part := range []struct {
			role string
			from []int32
			to   *[]int32
		}{{"train", sp.Train, &out.Train}, {"val", sp.Val, &out.Val}, {"test", sp.Test, &out.Test}} {
			rows := make([]int32, len(part.from))
			for k, v := range part.from {
				if v < 0 || int(v) >= raw.N {
					return "", fmt.Errorf("split %q: %s vertex %d, but vertices are 0..%d", sp.Name, part.role, v, raw.N-1)
				}
				if r := role[v]; r != 0 {
					return "", fmt.Errorf("split %q: vertex %s is in %s and again in %s: give every vertex one role",
						sp.Name, name(raw, int(v)), []string{"", "train", "val", "test"}[r], part.role)
				}
				role[v] = byte(i + 1)
				rows[k] = s.Rank[v]
			}
			slices.Sort(rows)
			*part.to = rows
		}
		s.Splits = append(s.Splits, out)
		s.Meta.SplitNames = append(s.Meta.SplitNames, sp.Name)
	}
	return spec, nil
}
