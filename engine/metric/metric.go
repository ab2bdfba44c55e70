// Package metric measures predictions on explicit lists of rows: nothing in it
// knows which rows are for training, and no row counts that is not listed.
package metric

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

// Argmax is the column of the largest value of a row: the lowest one on ties. A
// NaN is smaller than everything, so a row of NaNs gives 0; an empty row gives -1.
func Argmax(row []float32) int32 {
	if len(row) == 0 {
		return -1
	}
	best := int32(0)
	for c, x := range row {
		if b := row[best]; x > b || b != b && x == x {
			best = int32(c)
		}
	}
	return best
}

// Predict is the class of each row of rows, len(rows) values, by Argmax.
func Predict(logits *kernels.Mat, rows []int32) []int32 {
	out := make([]int32, len(rows))
	for i, r := range rows {
		out[i] = Argmax(logits.Row(int(r)))
	}
	return out
}

// Accuracy is the share of rows, each with a label of at least 0, whose
// prediction is their label. Rows without a label count for nothing; the
// accuracy of no rows is NaN.
func Accuracy(logits *kernels.Mat, labels, rows []int32) float64 {
	var right, all int64
	for _, r := range rows {
		want := labels[r]
		if want < 0 {
			continue
		}
		all++
		if Argmax(logits.Row(int(r))) == want {
			right++
		}
	}
	return ratio(right, all)
}

// ratio is a/b, NaN for 0/0.
func ratio(a, b int64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}

// Confusion counts how often a class was predicted for another: N[want][got].
type Confusion struct{ N [][]int64 }

// Confuse fills the confusion matrix of classes classes over rows. Rows without
// a label are left out.
func Confuse(logits *kernels.Mat, labels, rows []int32, classes int) (*Confusion, error) {
	m := &Confusion{N: make([][]int64, classes)}
	for c := range m.N {
		m.N[c] = make([]int64, classes)
	}
	for _, r := range rows {
		want := labels[r]
		if want < 0 {
			continue
		}
		got := Argmax(logits.Row(int(r)))
		if int(want) >= classes || got < 0 || int(got) >= classes {
			return nil, fmt.Errorf("confusion matrix of %d classes: row %d has label %d and prediction %d", classes, r, want, got)
		}
		m.N[want][got]++
	}
	return m, nil
}

// Accuracy is the share of the diagonal.
func (m *Confusion) Accuracy() float64 {
	var right, all int64
	for want, row := range m.N {
		for got, n := range row {
			all += n
			if got == want {
				right += n
			}
		}
	}
	return ratio(right, all)
}

// Class is what the counts say about one class.
type Class struct {
	// Support counts rows of the class, Predicted rows that were given it.
	Support, Predicted, Right int64
	// Precision, Recall and F1 are 0 where they would divide by 0.
	Precision, Recall, F1 float64
}

// Classes is the table of all classes.
func (m *Confusion) Classes() []Class {
	support, predicted := make([]int64, len(m.N)), make([]int64, len(m.N))
	for want, row := range m.N {
		for got, n := range row {
			support[want] += n
			predicted[got] += n
		}
	}
	table := make([]Class, len(m.N))
	for c := range table {
		table[c] = class(m.N[c][c], support[c], predicted[c])
	}
	return table
}

func class(right, support, predicted int64) Class {
	return Class{
		Support: support, Predicted: predicted, Right: right,
		Precision: share(right, predicted), Recall: share(right, support), F1: share(2*right, support+predicted),
	}
}

// share is a/b, 0 for 0/0.
func share(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// MacroF1 is the mean F1 of the classes that occur, as a label or a prediction;
// NaN if none does.
func (m *Confusion) MacroF1() float64 {
	sum, n := 0.0, 0
	for _, c := range m.Classes() {
		if c.Support+c.Predicted > 0 {
			sum += c.F1
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// MicroF1 is the F1 of all decisions together. With one label per row that is
// the accuracy.
func (m *Confusion) MicroF1() float64 {
	var right, total int64
	for _, c := range m.Classes() {
		right += c.Right
		total += c.Support + c.Predicted
	}
	return ratio(2*right, total)
}
