package dataset

import (
	"fmt"
	"slices"

	"dorylus/kernels"
)

// labelled says whether v's classes are known.
func (r *Raw) labelled(v int) bool {
	switch {
	case r.Multi != nil:
		return r.Labelled == nil || r.Labelled[v]
	case r.Labels != nil:
		return r.Labels[v] >= 0
	}
	return false
}

// classesOf is the classes of v, ascending; none where it is unlabelled.
func (r *Raw) classesOf(v int) []int32 {
	switch {
	case !r.labelled(v):
		return nil
	case r.Multi != nil:
		return r.Multi.Col[r.Multi.RowPtr[v]:r.Multi.RowPtr[v+1]]
	}
	return r.Labels[v : v+1]
}

// hasLabels says whether the source has labels of either kind.
func (r *Raw) hasLabels() bool { return r.Labels != nil || r.Multi != nil }

// DrawSplit draws a split of r's labelled vertices as MakeSplit does. Where vertices
// have several classes, only random splits can be drawn.
func (r *Raw) DrawSplit(spec string, seed uint64) (Split, error) {
	if r.Multi == nil {
		return MakeSplit(spec, r.Labels, r.classes(), seed)
	}
	if !randomSpec(spec) {
		return Split{}, fmt.Errorf("make split %q: vertices have several classes, so that none can be drawn per class; use random, such as random:60/20/20", spec)
	}
	one := make([]int32, r.N)
	for v := range one {
		if !r.labelled(v) {
			one[v] = -1
		}
	}
	return MakeSplit(spec, one, 1, seed)
}

// classSets collects the classes of one vertex after another.
type classSets struct {
	name     string // of the file, for messages
	sets     *kernels.CSR
	labelled []bool
	unknown  bool // some vertex is not labelled
	several  bool // some labelled vertex has not exactly one class
}

func newClassSets(name string, classes int) (*classSets, error) {
	if classes > maxClasses {
		return nil, fmt.Errorf("read %s: %d classes are more than the %d that are read; are these features?", name, classes, maxClasses)
	}
	return &classSets{name: name, sets: &kernels.CSR{Cols: classes, RowPtr: []int64{0}}}, nil
}

// add takes the next vertex's value for each class: 1 where it belongs, 0 where not,
// and NaN or a negative number throughout where nothing is known about it.
func (s *classSets) add(row []float32) error {
	v, missing := len(s.labelled), 0
	for k, x := range row {
		switch {
		case x == 1:
			s.sets.Col = append(s.sets.Col, int32(k))
		case x != x || x < 0:
			missing++
		case x != 0:
			return fmt.Errorf("read %s: row %d: class %d has %v; each class of a vertex is 0 or 1", s.name, v, k, x)
		}
	}
	if missing > 0 && missing < len(row) {
		return fmt.Errorf("read %s: row %d: %d of %d classes are missing; give 0 or 1 for each, or leave the whole vertex out", s.name, v, missing, len(row))
	}
	s.close(missing == 0 || len(row) == 0)
	return nil
}

// addSet takes the next vertex's classes as they are listed, in any order.
func (s *classSets) addSet(classes []int32, labelled bool) error {
	start := len(s.sets.Col)
	s.sets.Col = append(s.sets.Col, classes...)
	mine := s.sets.Col[start:]
	slices.Sort(mine)
	mine = slices.Compact(mine)
	s.sets.Col = s.sets.Col[:start+len(mine)]
	for _, k := range mine {
		if k < 0 || k >= maxClasses {
			return fmt.Errorf("read %s: row %d: %d is not a class number in [0,%d)", s.name, len(s.labelled), k, maxClasses)
		}
		s.sets.Cols = max(s.sets.Cols, int(k)+1)
	}
	s.close(labelled)
	return nil
}

// close ends a vertex's row.
func (s *classSets) close(labelled bool) {
	n := int64(len(s.sets.Col)) - s.sets.RowPtr[len(s.sets.RowPtr)-1]
	s.sets.RowPtr = append(s.sets.RowPtr, int64(len(s.sets.Col)))
	s.labelled = append(s.labelled, labelled)
	s.unknown = s.unknown || !labelled
	s.several = s.several || labelled && n != 1
}

// store gives r the labels: a class each where every labelled vertex has exactly one.
func (s *classSets) store(r *Raw) {
	if s.several {
		r.Multi = s.sets
		if s.unknown {
			r.Labelled = s.labelled
		}
		return
	}
	r.Labels = slices.Repeat([]int32{-1}, len(s.labelled))
	for v, on := range s.labelled {
		if on {
			r.Labels[v] = s.sets.Col[s.sets.RowPtr[v]]
		}
	}
	r.Findings = append(r.Findings, Finding{Code: "one-hot-labels", Severity: Info, Count: int64(s.sets.Cols), First: "in " + s.name,
		Effect: "every labelled vertex has exactly one of these classes: they are trained as one label with a softmax, not as separate yes-or-no questions",
		Remedy: "nothing to do, unless a vertex may have several: then the file should have one that does"})
}

// place puts row i at vertex order[i]; vertices without a row are not labelled.
func (s *classSets) place(order []int32, n int) {
	row := slices.Repeat([]int32{-1}, n)
	for i, v := range order {
		row[v] = int32(i)
	}
	old := *s
	s.sets = &kernels.CSR{Cols: old.sets.Cols, RowPtr: make([]int64, 1, n+1), Col: make([]int32, 0, len(old.sets.Col))}
	s.labelled = nil
	for _, i := range row {
		if i >= 0 {
			s.sets.Col = append(s.sets.Col, old.sets.Col[old.sets.RowPtr[i]:old.sets.RowPtr[i+1]]...)
		}
		s.close(i >= 0 && old.labelled[i])
	}
}

// setLabels reads one label per vertex, or one column of zeros and ones per class.
func (r *Raw) setLabels(a *numArray) error {
	sets, labels, err := a.anyLabels(r.N)
	if err != nil {
		return err
	}
	if sets != nil {
		sets.store(r)
	} else {
		r.Labels = labels
	}
	return nil
}

// anyLabels is the labels of n vertices, of either kind. n < 0: as many as there are rows.
func (a *numArray) anyLabels(n int) (*classSets, []int32, error) {
	rows, cols, err := a.dims()
	if err != nil {
		return nil, nil, err
	}
	if n < 0 {
		n = rows
	}
	if cols == 1 {
		labels, err := a.labels(n)
		return nil, labels, err
	}
	if rows != n {
		return nil, nil, rowsMismatch(a.name, "rows of labels", rows, n)
	}
	s, err := newClassSets(a.name, cols)
	if err != nil {
		return nil, nil, err
	}
	x, err := a.floats()
	if err != nil {
		return nil, nil, err
	}
	for v := range rows {
		if err := s.add(x[v*cols : (v+1)*cols]); err != nil {
			return nil, nil, err
		}
	}
	return s, nil, nil
}
