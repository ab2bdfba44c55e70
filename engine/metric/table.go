package metric

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// fullMatrix is the number of classes up to which a confusion matrix is printed whole,
// and the number of confusions that are printed of a larger one.
const fullMatrix = 20

// Table is the per-class table in text. names may be nil or short: a class
// without a name is its number.
func (m *Confusion) Table(names []string) string {
	return classTable(m.Classes(), names) +
		fmt.Sprintf("macro F1 %.4f, micro F1 %.4f, accuracy %.4f\n", m.MacroF1(), m.MicroF1(), m.Accuracy())
}

// Table is the per-class table in text, as that of a Confusion.
func (m *Sets) Table(names []string) string {
	return classTable(m.Classes(), names) +
		fmt.Sprintf("macro F1 %.4f, micro F1 %.4f, rows with all labels right %.4f\n", m.MacroF1(), m.MicroF1(), m.Accuracy())
}

func classTable(classes []Class, names []string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "class\trows\tpredicted\tprecision\trecall\tF1\t")
	for c, t := range classes {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.4f\t%.4f\t%.4f\t\n", nameOf(c, names), t.Support, t.Predicted, t.Precision, t.Recall, t.F1)
	}
	w.Flush()
	return b.String()
}

func nameOf(c int, names []string) string {
	if c < len(names) {
		return names[c]
	}
	return fmt.Sprint(c)
}

// Matrix is the confusion matrix in text: a line for each class, with its number and
// name, and a column for each class that was predicted, by number. Of more than 20
// classes it is the list of the most frequent confusions.
func (m *Confusion) Matrix(names []string) string {
	if len(m.N) > fullMatrix {
		return m.worst(names)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	b.WriteString("Classes (lines) and what was predicted (columns):\n")
	fmt.Fprint(w, "class\t#\t")
	for c := range m.N {
		fmt.Fprintf(w, "%d\t", c)
	}
	for want, row := range m.N {
		fmt.Fprintf(w, "\n%s\t%d\t", nameOf(want, names), want)
		for _, n := range row {
			fmt.Fprintf(w, "%d\t", n)
		}
	}
	fmt.Fprintln(w)
	w.Flush()
	return b.String()
}

// worst lists the most frequent confusions; of equal ones, those of lower classes.
func (m *Confusion) worst(names []string) string {
	type cell struct {
		want, got int
		n         int64
	}
	var cells []cell
	for want, row := range m.N {
		for got, n := range row {
			if n > 0 && got != want {
				cells = append(cells, cell{want, got, n})
			}
		}
	}
	slices.SortStableFunc(cells, func(a, b cell) int {
		switch {
		case a.n > b.n:
			return -1
		case a.n < b.n:
			return 1
		}
		return 0
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(&b, "The most frequent confusions, of %d kinds:\n", len(cells))
	fmt.Fprintln(w, "class\tpredicted\trows\t")
	for _, c := range cells[:min(len(cells), fullMatrix)] {
		fmt.Fprintf(w, "%s\t%s\t%d\t\n", nameOf(c.want, names), nameOf(c.got, names), c.n)
	}
	w.Flush()
	return b.String()
}
