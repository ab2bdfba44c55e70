// Package export writes what a model says of each vertex, in the user's own order and
// ids, as .npy, .csv or .parquet.
package export

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"dorylus/kernels"
)

// Table is what is known of every vertex, rows in the user's order. At least one of
// Class, Sets, Scores and Embedding is set; each has Rows rows.
type Table struct {
	Rows int
	// IDs are the vertices' names. nil: 0..Rows-1.
	IDs []string
	// Class is the most likely class of each vertex; Sets are those of a vertex that may
	// have several (Cols = classes, Val is nil).
	Class []int32
	Sets  *kernels.CSR
	// ClassNames are the classes' names. nil, or short: their numbers.
	ClassNames []string
	// Scores are probabilities, one column per class.
	Scores *kernels.Mat
	// Embedding is the values of a hidden layer.
	Embedding *kernels.Mat
}

// Extensions are the endings of the files that Write can make.
func Extensions() []string { return []string{".npy", ".csv", ".parquet"} }

// Write writes t to w in the format that name's extension says. A .npy file holds one
// array: Embedding, else Scores (float32, a row per vertex), else Class (int32), else
// Sets (int8, a 0 or 1 per class). The others have a column for each thing given.
func Write(w io.Writer, name string, t *Table) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	var err error
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".npy":
		err = writeNPY(w, t)
	case ".csv":
		err = writeCSV(w, t)
	case ".parquet":
		err = writeParquet(w, t)
	default:
		return fmt.Errorf("write %s: %q is no known format; name a file that ends in %s", name, ext, strings.Join(Extensions(), ", "))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// check refuses a table whose parts do not fit together.
func (t *Table) check() error {
	for _, part := range []struct {
		what string
		set  bool
		rows int
	}{
		{"ids", t.IDs != nil, len(t.IDs)}, {"classes", t.Class != nil, len(t.Class)}, {"sets of classes", t.Sets != nil, rowsOf(t.Sets)},
		{"rows of scores", t.Scores != nil, matRows(t.Scores)}, {"rows of an embedding", t.Embedding != nil, matRows(t.Embedding)},
	} {
		if part.set && part.rows != t.Rows {
			return fmt.Errorf("%d %s for %d vertices", part.rows, part.what, t.Rows)
		}
	}
	if t.Class == nil && t.Sets == nil && t.Scores == nil && t.Embedding == nil {
		return fmt.Errorf("there is nothing to write: neither classes, scores nor an embedding")
	}
	return nil
}

func rowsOf(g *kernels.CSR) int {
	if g == nil {
		return 0
	}
	return g.Rows()
}

func matRows(m *kernels.Mat) int {
	if m == nil {
		return 0
	}
	return m.Rows
}

// id is the user's name of vertex v.
func (t *Table) id(v int) string {
	if t.IDs != nil {
		return t.IDs[v]
	}
	return strconv.Itoa(v)
}

// className is class c as users call it.
func (t *Table) className(c int) string {
	if c < len(t.ClassNames) {
		return t.ClassNames[c]
	}
	return strconv.Itoa(c)
}

// set is the classes of vertex v of a model with several.
func (t *Table) set(v int) []int32 { return t.Sets.Col[t.Sets.RowPtr[v]:t.Sets.RowPtr[v+1]] }

// setNames is their names.
func (t *Table) setNames(v int) []string {
	names := make([]string, 0, 4)
	for _, c := range t.set(v) {
		names = append(names, t.className(int(c)))
	}
	return names
}
