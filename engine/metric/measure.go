package metric

import (
	"fmt"

	"dorylus/kernels"
)

// Truth is what is known of the rows: one label each, -1 for none, or the classes that
// each row lists. One of them is set.
type Truth struct {
	Labels []int32
	Sets   *kernels.CSR
}

// Name is what a setting asks for: name itself, or for "" what is usual for t.
func (t Truth) Name(name string) string {
	switch {
	case name != "":
		return name
	case t.Sets != nil:
		return "micro-f1"
	}
	return "accuracy"
}

// Measure is the metric name ("accuracy", "micro-f1", "macro-f1", "roc-auc") of rows of
// logits, and their accuracy: of several classes a row, the share of rows whose classes
// are all right. Both are NaN of no rows.
func Measure(name string, logits *kernels.Mat, t Truth, rows []int32) (value, accuracy float64, err error) {
	var count interface {
		Accuracy() float64
		MicroF1() float64
		MacroF1() float64
	}
	if t.Sets != nil {
		count, err = CountSets(logits, t.Sets, rows)
	} else {
		count, err = Confuse(logits, t.Labels, rows, logits.Cols)
	}
	if err != nil {
		return 0, 0, err
	}
	accuracy = count.Accuracy()
	switch {
	case name == "accuracy":
		return accuracy, accuracy, nil
	case name == "micro-f1":
		return count.MicroF1(), accuracy, nil
	case name == "macro-f1":
		return count.MacroF1(), accuracy, nil
	case name == "roc-auc" && t.Sets != nil:
		return SetAUC(logits, t.Sets, rows), accuracy, nil
	case name == "roc-auc":
		return AUC(logits, t.Labels, rows), accuracy, nil
	}
	return 0, 0, fmt.Errorf("unknown metric %q", name)
}
