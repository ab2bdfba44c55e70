package metric

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is the per-class table in text. names may be nil or short: a class
// without a name is its number.
func (m *Confusion) Table(names []string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "class\trows\tpredicted\tprecision\trecall\tF1\t")
	for c, t := range m.Classes() {
		name := fmt.Sprint(c)
		if c < len(names) {
			name = names[c]
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.4f\t%.4f\t%.4f\t\n", name, t.Support, t.Predicted, t.Precision, t.Recall, t.F1)
	}
	fmt.Fprintf(w, "macro F1 %.4f, micro F1 %.4f, accuracy %.4f\n", m.MacroF1(), m.MicroF1(), m.Accuracy())
	w.Flush()
	return b.String()
}
