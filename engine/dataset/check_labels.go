package dataset

import (
	"fmt"
	"strings"
)

// classes is the number of classes that r's names or labels imply.
func (r *Raw) classes() int {
	n := len(r.Classes)
	switch {
	case n > 0:
	case r.Multi != nil:
		n = r.Multi.Cols
	default:
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
	if !r.hasLabels() {
		c.add(Finding{Code: "no-labels", Severity: Warning, Count: int64(r.N), First: r.where(0),
			Effect: "there is nothing to train for", Remedy: "give a file of labels (--labels-file)"})
		return
	}
	classes := r.classes()
	size := make([]int64, classes)
	var outside, none, without tally
	for v := range r.N {
		switch {
		case r.Labels != nil && r.Labels[v] < -1:
			outside.hit(func() string { return fmt.Sprintf("vertex %s with label %d", r.name(v), r.Labels[v]) })
			continue
		case !r.labelled(v):
			none.hit(func() string { return "vertex " + r.name(v) })
			continue
		}
		for _, k := range r.classesOf(v) {
			if k < 0 || int(k) >= classes {
				outside.hit(func() string { return fmt.Sprintf("vertex %s with label %d", r.name(v), k) })
				continue
			}
			size[k]++
		}
		if len(r.classesOf(v)) == 0 {
			without.hit(func() string { return "vertex " + r.name(v) })
		}
	}
	c.add(outside.finding("label-out-of-range", Error, fmt.Sprintf("labels must be in [0,%d), the number of classes, or -1 for none: the loss of any other is not defined", classes), "correct the labels or the list of class names"))
	c.add(none.finding("unlabelled", Info, "they take part in gathering but neither in the loss nor in any accuracy", "nothing to do, unless their labels are missing from the source"))
	c.add(without.finding("no-class", Info, "they are trained to belong to none of the classes, which lowers every score", "nothing to do if that is so; if their classes are not known, leave them out of the file of labels"))
	if r.Multi != nil {
		c.manyClasses(size, int64(r.N)-none.count)
	} else {
		c.oneClass(size)
	}
}

// oneClass looks at the sizes of classes that exclude each other.
func (c *checker) oneClass(size []int64) {
	r := c.r
	small, large := c.extremes(size)
	if large >= 0 && size[large] > 10*size[small] {
		c.add(Finding{Code: "class-imbalance", Severity: Info, Count: int64(len(size)),
			First:  fmt.Sprintf("class %s has %d vertices, class %s has %d", r.className(large), size[large], r.className(small), size[small]),
			Effect: "accuracy is dominated by the large classes", Remedy: "measure with --metric=macro-f1, or train with --class-weights=balanced"})
	}
	if large >= 0 && only(size, large) {
		c.add(Finding{Code: "one-class", Severity: Warning, Count: size[large], First: "class " + r.className(large),
			Effect: "every vertex has the same class: any model is right, and has learnt nothing", Remedy: "check that the right column of labels is read (--label-column)"})
	}
}

// only says whether no other class than k has a vertex.
func only(size []int64, k int) bool {
	for j, n := range size {
		if n > 0 && j != k {
			return false
		}
	}
	return true
}

// manyClasses looks at classes of which a vertex may have several.
func (c *checker) manyClasses(size []int64, labelled int64) {
	r := c.r
	small, _ := c.extremes(size)
	var all tally
	for k, n := range size {
		if n == labelled && n > 0 {
			all.hit(func() string { return "class " + r.className(k) })
		}
	}
	c.add(all.finding("full-classes", Warning, "every labelled vertex has this class: it raises every F1 score and is learnt from the bias alone", "leave the class out of the labels"))
	if small >= 0 && 100*size[small] < labelled {
		c.add(Finding{Code: "rare-classes", Severity: Info, Count: rare(size, labelled),
			First:  fmt.Sprintf("class %s has %d of %d vertices", r.className(small), size[small], labelled),
			Effect: "always saying no is right for 99 % of the vertices: such classes are hardly predicted, and the micro F1 score hides it", Remedy: "measure with --metric=macro-f1 or roc-auc, or train with --class-weights=balanced"})
	}
}

// rare counts the classes that fewer than 1 % of the labelled vertices have, but some.
func rare(size []int64, labelled int64) (count int64) {
	for _, n := range size {
		if n > 0 && 100*n < labelled {
			count++
		}
	}
	return count
}

// extremes is the smallest and the largest class that has a vertex, -1 where none
// has. It reports the others.
func (c *checker) extremes(size []int64) (small, large int) {
	var empty tally
	small, large = -1, -1
	for k, n := range size {
		if n == 0 {
			empty.hit(func() string { return "class " + c.r.className(k) })
			continue
		}
		if small < 0 || n < size[small] {
			small = k
		}
		if large < 0 || n > size[large] {
			large = k
		}
	}
	c.add(empty.finding("empty-classes", Warning, "the model has an output for a class that no vertex has: it costs time and can only be wrong", "number the classes without gaps"))
	return small, large
}

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
