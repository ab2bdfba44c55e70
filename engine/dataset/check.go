package dataset

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Check looks for everything in r that makes training wrong or different from what
// its owner may expect, and returns it beside what the reader noticed, errors first.
// It changes nothing. Beside r it needs 4 bytes an edge and about 25 a vertex.
func Check(r *Raw) []Finding {
	c := &checker{r: r}
	c.found = append(c.found, r.Findings...)
	if r.N == 0 {
		c.add(Finding{Code: "empty-graph", Severity: Error, Count: 1, First: r.where(0),
			Effect: "there is nothing to train on", Remedy: "check that the source is the one you mean"})
		return c.found
	}
	if c.shapes() {
		c.edges()
		c.weights()
		c.features()
		c.labels()
		c.splits()
	}
	return c.sorted()
}

// Fatal is an error that lists the findings of severity Error, nil where there is none.
func Fatal(findings []Finding) error {
	var errs []error
	for _, f := range findings {
		if f.Severity == Error {
			errs = append(errs, errors.New(f.String()))
		}
	}
	return errors.Join(errs...)
}

// String is the finding on one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d", f.Code, f.Count)
	if f.First != "" {
		fmt.Fprintf(&b, ", first %s", f.First)
	}
	if f.Effect != "" {
		fmt.Fprintf(&b, ": %s", f.Effect)
	}
	if f.Remedy != "" {
		fmt.Fprintf(&b, "; %s", f.Remedy)
	}
	return b.String()
}

// String is "info", "warning" or "error".
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	}
	return "error"
}

// checker collects findings about one Raw.
type checker struct {
	r     *Raw
	found []Finding
}

// add takes a finding unless it counts nothing.
func (c *checker) add(f Finding) {
	if f.Count > 0 {
		c.found = append(c.found, f)
	}
}

// sorted is the findings, errors first, otherwise in the order of the checks.
func (c *checker) sorted() []Finding {
	var out []Finding
	for _, s := range []Severity{Error, Warning, Info} {
		for _, f := range c.found {
			if f.Severity == s {
				out = append(out, f)
			}
		}
	}
	return out
}

// name is the user's name of vertex v.
func (r *Raw) name(v int) string {
	if v >= 0 && v < len(r.IDs) {
		return fmt.Sprintf("%q", clip(r.IDs[v]))
	}
	return fmt.Sprint(v)
}

// where is " in FILE" for the file number i, or for the data set.
func (r *Raw) where(i int) string {
	if i < len(r.Files) {
		return "in " + r.Files[i]
	}
	return "in " + r.Name
}

// record is edge record i in words.
func (r *Raw) record(i int) string {
	return fmt.Sprintf("record %d (%s -> %s)", i, r.name(int(r.Src[i])), r.name(int(r.Dst[i])))
}

// shapes checks what the other checks rely on.
func (c *checker) shapes() bool {
	r := c.r
	bad := func(first string) bool {
		c.add(Finding{Code: "shape-mismatch", Severity: Error, Count: 1, First: first,
			Effect: "rows would be matched with the wrong vertices", Remedy: "give one row per vertex, in vertex order"})
		return false
	}
	switch {
	case len(r.Src) != len(r.Dst):
		return bad(fmt.Sprintf("%d sources and %d destinations of edges", len(r.Src), len(r.Dst)))
	case r.Weight != nil && len(r.Weight) != len(r.Src):
		return bad(fmt.Sprintf("%d weights for %d edges", len(r.Weight), len(r.Src)))
	case r.IDs != nil && len(r.IDs) != r.N:
		return bad(fmt.Sprintf("%d names for %d vertices", len(r.IDs), r.N))
	case r.Labels != nil && len(r.Labels) != r.N:
		return bad(fmt.Sprintf("%d labels for %d vertices", len(r.Labels), r.N))
	case r.Multi != nil && r.Multi.Rows() != r.N:
		return bad(fmt.Sprintf("%d rows of classes for %d vertices", r.Multi.Rows(), r.N))
	case r.Labelled != nil && len(r.Labelled) != r.N:
		return bad(fmt.Sprintf("%d vertices are said to be labelled or not, of %d", len(r.Labelled), r.N))
	case r.Dense != nil && r.Dense.Rows != r.N:
		return bad(fmt.Sprintf("%d rows of features for %d vertices", r.Dense.Rows, r.N))
	case r.Sparse != nil && r.Sparse.Rows() != r.N:
		return bad(fmt.Sprintf("%d rows of features for %d vertices", r.Sparse.Rows(), r.N))
	}
	outside, first := int64(0), ""
	for i := range r.Src {
		if u, v := r.Src[i], r.Dst[i]; u < 0 || v < 0 || int(u) >= r.N || int(v) >= r.N {
			if outside == 0 {
				first = fmt.Sprintf("record %d (%d -> %d)", i, u, v)
			}
			outside++
		}
	}
	c.add(Finding{Code: "edge-out-of-range", Severity: Error, Count: outside, First: first,
		Effect: fmt.Sprintf("the edge names a vertex outside [0,%d): its message would come from another vertex's memory", r.N), Remedy: "declare more vertices (--vertices), or correct the edge"})
	return outside == 0
}

// weights looks at the weights themselves and at the degrees that they give.
func (c *checker) weights() {
	r := c.r
	if r.Weight == nil {
		return
	}
	var bad, negative, zero tally
	degree := make([]float64, r.N)
	for i, w := range r.Weight {
		switch f := float64(w); {
		case math.IsNaN(f) || math.IsInf(f, 0):
			bad.hit(func() string { return fmt.Sprintf("%s weighs %v", r.record(i), w) })
			continue
		case w < 0:
			negative.hit(func() string { return fmt.Sprintf("%s weighs %v", r.record(i), w) })
		case w == 0:
			zero.hit(func() string { return r.record(i) })
		}
		degree[r.Dst[i]] += float64(w)
		if r.Undirected && r.Src[i] != r.Dst[i] {
			degree[r.Src[i]] += float64(w)
		}
	}
	var below tally
	for v, d := range degree {
		if d <= -1 {
			below.hit(func() string { return fmt.Sprintf("vertex %s with in-weights that add up to %v", r.name(v), d) })
		}
	}
	c.add(bad.finding("non-finite-weights", Error, "one such edge makes every number near it NaN", "remove these edges or give them a number"))
	c.add(below.finding("negative-degree", Error, "the degree plus its self-loop is not above zero, and its square root does not exist", "use weights that are not negative, or leave them out"))
	c.add(negative.finding("negative-weights", Warning, "neighbours are subtracted; normalising by degree assumes weights that are not negative", "check that this is meant, or leave the weights out"))
	c.add(zero.finding("zero-weights", Warning, "the edge passes nothing on where weights are used, but counts as an edge where they are not", "remove these edges from the source, or read another column of weights (--weight-column)"))
}

// tally counts and remembers the first example.
type tally struct {
	count int64
	first string
}

func (t *tally) hit(first func() string) {
	if t.count == 0 {
		t.first = first()
	}
	t.count++
}

func (t *tally) finding(code string, s Severity, effect, remedy string) Finding {
	return Finding{Code: code, Severity: s, Count: t.count, First: t.first, Effect: effect, Remedy: remedy}
}
