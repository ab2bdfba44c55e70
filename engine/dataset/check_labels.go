package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// features looks for numbers that spoil training, and for rows and columns that say nothing.
func (c *checker) features() {
	r := c.r
	if r.Dense == nil && r.Sparse == nil {
		c.add(Finding{Code: "no-features", Severity: Warning, Count: int64(r.N),
			Effect: "there is nothing to classify by", Remedy: "give features, or prepare with identity features: one column per vertex"})
		return
	}
	var bad, zeroRows tally
	value := func(v, col int, x float32) bool {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			bad.hit(func() string { return fmt.Sprintf("row %d (vertex %s), column %d: %v", v, r.name(v), col, x) })
		}
		return x != 0
	}
	var constant int64
	if d := r.Dense; d != nil {
		same := slices.Repeat([]bool{true}, d.Cols)
		for v := range d.Rows {
			any := false
			for col, x := range d.Row(v) {
				any = value(v, col, x) || any
				if x != d.Host[col] {
					same[col] = false
				}
			}
			if !any {
				zeroRows.hit(func() string { return "vertex " + r.name(v) })
			}
		}
		for _, s := range same {
			if s {
				constant++
			}
		}
	} else {
		constant = c.sparseFeatures(value, &zeroRows)
	}
	c.add(bad.finding("non-finite-features", Error, "one such value makes every weight NaN in the first epoch", "replace it with a number, for example the column's mean"))
	c.add(zeroRows.finding("zero-features", Info, "they are classified by their neighbours alone", "nothing to do, unless their features are missing from the source"))
	c.add(Finding{Code: "constant-columns", Severity: Info, Count: constant,
		Effect: "these feature columns are the same for every vertex and cost time only", Remedy: "leave them out"})
}

// sparseFeatures does the same for CSR and returns the number of constant columns.
func (c *checker) sparseFeatures(value func(v, col int, x float32) bool, zeroRows *tally) (constant int64) {
	r := c.r
	m := r.Sparse
	given := make([]int32, m.Cols)
	first := make([]float32, m.Cols)
	differs := make([]bool, m.Cols)
	for v := range m.Rows() {
		any := false
		for j := m.RowPtr[v]; j < m.RowPtr[v+1]; j++ {
			col, x := m.Col[j], float32(1)
			if m.Val != nil {
				x = m.Val[j]
			}
			any = value(v, int(col), x) || any
			if x == 0 {
				continue
			}
			if given[col] == 0 {
				first[col] = x
			}
			differs[col] = differs[col] || x != first[col]
			given[col]++
		}
		if !any {
			zeroRows.hit(func() string { return "vertex " + r.name(v) })
		}
	}
	for col, n := range given {
		if n == 0 || int(n) == r.N && !differs[col] {
			constant++
		}
	}
	return constant
}

// classes is the number of classes that r's names or labels imply.
func (r *Raw) classes() int {
	n := len(r.Classes)
	if n == 0 {
		for _, c := range r.Labels {
			n = max(n, int(c)+1)
		}
	}
	return n
}

// className is class k in words.
func (r *Raw) className(k int) string {
	if k >= 0 && k < len(r.Classes) {
		return fmt.Sprintf("%d (%s)", k, clip(r.Classes[k]))
	}
	return fmt.Sprint(k)
}

// labels looks at the range of labels and the sizes of classes.
func (c *checker) labels() {
	r := c.r
	if r.Labels == nil {
		c.add(Finding{Code: "no-labels", Severity: Warning, Count: int64(r.N),
			Effect: "there is nothing to train for", Remedy: "give a file of labels"})
		return
	}
	classes := r.classes()
	size := make([]int64, classes)
	var outside, none tally
	for v, k := range r.Labels {
		switch {
		case k == -1:
			none.hit(func() string { return "vertex " + r.name(v) })
		case k < 0 || int(k) >= classes:
			outside.hit(func() string { return fmt.Sprintf("vertex %s with label %d", r.name(v), k) })
		default:
			size[k]++
		}
	}
	c.add(outside.finding("label-out-of-range", Error, fmt.Sprintf("labels must be in [0,%d), the number of classes, or -1 for none", classes), "correct the labels or the list of class names"))
	c.add(none.finding("unlabelled", Info, "they take part in gathering but neither in the loss nor in any accuracy", "nothing to do, unless their labels are missing from the source"))
	var empty tally
	small, large := -1, -1
	for k, n := range size {
		if n == 0 {
			empty.hit(func() string { return "class " + r.className(k) })
			continue
		}
		if small < 0 || n < size[small] {
			small = k
		}
		if large < 0 || n > size[large] {
			large = k
		}
	}
	c.add(empty.finding("empty-classes", Warning, "the model has an output for a class that no vertex has", "number the classes without gaps"))
	if large >= 0 && size[large] > 10*size[small] {
		c.add(Finding{Code: "class-imbalance", Severity: Info, Count: int64(classes),
			First:  fmt.Sprintf("class %s has %d vertices, class %s has %d", r.className(large), size[large], r.className(small), size[small]),
			Effect: "accuracy is dominated by the large classes", Remedy: "watch the macro F1 score, or use class weights"})
	}
}

// splits looks at every split's three lists.
func (c *checker) splits() {
	r := c.r
	if len(r.Splits) == 0 {
		if r.Labels != nil {
			c.add(Finding{Code: "no-splits", Severity: Warning, Count: 1,
				Effect: "it is not said which vertices train and which test", Remedy: "draw a split, such as random:60/20/20 or per-class:20/30"})
		}
		return
	}
	var outside, repeats, overlap, unlabelled, untrained, emptyTrain, emptyOther tally
	role := make([]int8, r.N)
	for i := range r.Splits {
		s := &r.Splits[i]
		clear(role)
		trained := make([]bool, r.classes())
		for k := range 3 {
			ids := *s.role(k)
			at := func(v int32) string {
				return fmt.Sprintf("vertex %s in %s of split %q", r.name(int(v)), roleNames[k], s.Name)
			}
			if len(ids) == 0 {
				empty := &emptyOther
				if k == 0 {
					empty = &emptyTrain
				}
				empty.hit(func() string { return fmt.Sprintf("%s of split %q", roleNames[k], s.Name) })
			}
			for _, v := range ids {
				if v < 0 || int(v) >= r.N {
					outside.hit(func() string { return at(v) })
					continue
				}
				switch had := role[v]; {
				case had == int8(k+1):
					repeats.hit(func() string { return at(v) })
				case had != 0:
					overlap.hit(func() string { return at(v) + ", which is in " + roleNames[had-1] + " too" })
				}
				role[v] = int8(k + 1)
				switch label := r.labelOf(v); {
				case label < 0:
					unlabelled.hit(func() string { return at(v) })
				case k == 0 && int(label) < len(trained):
					trained[label] = true
				}
			}
		}
		for k := range trained {
			if !trained[k] && len(s.Train) > 0 && r.hasClass(k) {
				untrained.hit(func() string { return fmt.Sprintf("class %s in split %q", r.className(k), s.Name) })
			}
		}
	}
	c.add(outside.finding("split-out-of-range", Error, "a split names a vertex that does not exist", "splits hold vertex indices in the data set's own order"))
	c.add(repeats.finding("split-repeats", Error, "the vertex would count twice", "name each vertex once"))
	c.add(overlap.finding("split-overlap", Error, "the vertex would be tested on what it was trained with: accuracies would be too high", "give every vertex one role per split"))
	c.add(unlabelled.finding("split-unlabelled", Error, "the loss or accuracy of a vertex without a label is not defined", "take it out of the split, or give it a label"))
	c.add(emptyTrain.finding("empty-train", Error, "there is nothing to train on", "name training vertices, or draw a split"))
	c.add(emptyOther.finding("empty-mask", Warning, "its accuracy cannot be measured", "name validation and test vertices, or draw a split"))
	c.add(untrained.finding("class-untrained", Warning, "no training vertex has this class, so it is never predicted", "draw the split per class, such as per-class:20/30"))
}

// labelOf is v's label, -1 where there is none.
func (r *Raw) labelOf(v int32) int32 {
	if r.Labels == nil {
		return -1
	}
	return r.Labels[v]
}

// hasClass says whether any vertex has class k.
func (r *Raw) hasClass(k int) bool { return slices.Contains(r.Labels, int32(k)) }

// Summary is r in one line: sizes, features, classes, splits.
func (r *Raw) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %d vertices, %d edge records", r.Name, r.Format, r.N, len(r.Src))
	switch {
	case r.Dense != nil:
		fmt.Fprintf(&b, ", %d dense features", r.Dense.Cols)
	case r.Sparse != nil:
		fmt.Fprintf(&b, ", %d sparse features (%d values)", r.Sparse.Cols, r.Sparse.Edges())
	}
	if n := r.classes(); n > 0 {
		fmt.Fprintf(&b, ", %d classes", n)
	}
	if n := len(r.Splits); n > 0 {
		fmt.Fprintf(&b, ", %d splits", n)
	}
	return b.String()
}
