package metric

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

// Sets counts decisions where a row may have several classes. A row is given the
// classes whose logit is above 0, a probability above one half.
type Sets struct {
	// TP, FP and FN are by class: rows that have it and were given it, that were given
	// it wrongly, that have it and were not given it.
	TP, FP, FN []int64
	// Exact counts rows, of Rows, that were given what they have and nothing else.
	Exact, Rows int64
}

// NewSets is an empty count.
func NewSets(classes int) *Sets {
	return &Sets{TP: make([]int64, classes), FP: make([]int64, classes), FN: make([]int64, classes)}
}

// CountSets counts rows of logits, whose classes targets lists by row.
func CountSets(logits *kernels.Mat, targets *kernels.CSR, rows []int32) (*Sets, error) {
	if logits.Cols != targets.Cols || logits.Rows != targets.Rows() {
		return nil, fmt.Errorf("count labels: logits are %d x %d, targets %d x %d", logits.Rows, logits.Cols, targets.Rows(), targets.Cols)
	}
	m := NewSets(logits.Cols)
	for _, r := range rows {
		m.Add(logits.Row(int(r)), targets.Col[targets.RowPtr[r]:targets.RowPtr[r+1]])
	}
	return m, nil
}

// Add counts one row, which has the classes of has, ascending; repeats count once.
func (m *Sets) Add(logits []float32, has []int32) {
	wrong := false
	for c, z := range logits {
		want := len(has) > 0 && int(has[0]) == c
		for len(has) > 0 && int(has[0]) <= c {
			has = has[1:]
		}
		switch given := z > 0; {
		case want && given:
			m.TP[c]++
		case want:
			m.FN[c]++
			wrong = true
		case given:
			m.FP[c]++
			wrong = true
		}
	}
	m.Rows++
	if !wrong {
		m.Exact++
	}
}

// Merge adds the counts of o, of as many classes.
func (m *Sets) Merge(o *Sets) {
	for c := range m.TP {
		m.TP[c] += o.TP[c]
		m.FP[c] += o.FP[c]
		m.FN[c] += o.FN[c]
	}
	m.Exact += o.Exact
	m.Rows += o.Rows
}

// Accuracy is the share of rows that were given exactly what they have; NaN of none.
func (m *Sets) Accuracy() float64 { return ratio(m.Exact, m.Rows) }

// Classes is the table of all classes.
func (m *Sets) Classes() []Class {
	table := make([]Class, len(m.TP))
	for c, right := range m.TP {
		table[c] = class(right, right+m.FN[c], right+m.FP[c])
	}
	return table
}

// MicroF1 is the F1 of the decisions of all classes together: 0 where no row has a
// class and none was given one, NaN of no rows.
func (m *Sets) MicroF1() float64 {
	if m.Rows == 0 {
		return math.NaN()
	}
	var right, total int64
	for c, n := range m.TP {
		right += n
		total += 2*n + m.FP[c] + m.FN[c]
	}
	return share(2*right, total)
}

// MacroF1 is the mean F1 of all classes, where that of a class that no row has and none
// was given is 0, as in scikit-learn; NaN of no rows.
func (m *Sets) MacroF1() float64 {
	if m.Rows == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, c := range m.Classes() {
		sum += c.F1
	}
	return sum / float64(len(m.TP))
}
