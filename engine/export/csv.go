package export

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// writeCSV writes a line per vertex: its id, its class or its classes with ; between
// them, and a column per score (p_CLASS) and value of the embedding (e_0, e_1, ...).
func writeCSV(out io.Writer, t *Table) error {
	b := bufio.NewWriterSize(out, 1<<16)
	w := csv.NewWriter(b)
	line := []string{"id"}
	switch {
	case t.Class != nil:
		line = append(line, "class")
	case t.Sets != nil:
		line = append(line, "classes")
	}
	if t.Scores != nil {
		for c := range t.Scores.Cols {
			line = append(line, "p_"+t.className(c))
		}
	}
	if t.Embedding != nil {
		for c := range t.Embedding.Cols {
			line = append(line, fmt.Sprintf("e_%d", c))
		}
	}
	if err := w.Write(line); err != nil {
		return err
	}
	for v := range t.Rows {
		line = append(line[:0], t.id(v))
		switch {
		case t.Class != nil:
			line = append(line, t.className(int(t.Class[v])))
		case t.Sets != nil:
			line = append(line, strings.Join(t.setNames(v), ";"))
		}
		if t.Scores != nil {
			line = appendFloats(line, t.Scores.Row(v))
		}
		if t.Embedding != nil {
			line = appendFloats(line, t.Embedding.Row(v))
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return b.Flush()
}

// appendFloats appends the shortest texts that read back as the same float32.
func appendFloats(line []string, row []float32) []string {
	for _, x := range row {
		line = append(line, strconv.FormatFloat(float64(x), 'g', -1, 32))
	}
	return line
}
