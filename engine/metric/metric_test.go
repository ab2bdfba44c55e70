package metric

import (
	"math"
	"reflect"
	"testing"

	"dorylus/kernels"
)

var nan = float32(math.NaN())

func TestArgmax(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, test := range []struct {
		row  []float32
		want int32
	}{
		{nil, -1},
		{[]float32{3}, 0},
		{[]float32{1, 2, 0}, 1},
		{[]float32{2, 2, 2}, 0},
		{[]float32{0, 5, 5}, 1},
		{[]float32{-3, -1, -2}, 1},
		{[]float32{nan, -5}, 1},
		{[]float32{-5, nan}, 0},
		{[]float32{nan, -inf, nan}, 1},
		{[]float32{nan, nan}, 0},
		{[]float32{0, inf, nan, inf}, 1},
	} {
		if got := Argmax(test.row); got != test.want {
			t.Errorf("Argmax(%v) = %d, want %d", test.row, got, test.want)
		}
	}
}

// five rows with predictions 0 1 1 2 0, padded by a column that must not be read.
func five() *kernels.Mat {
	return &kernels.Mat{Rows: 5, Cols: 3, Stride: 4, Host: []float32{
		9, 1, 1, 99,
		0, 2, 1, 99,
		0, 2, 2, 99,
		0, 1, 2, 99,
		0, nan, -1, 99,
	}}
}

func TestPredict(t *testing.T) {
	got := Predict(five(), []int32{4, 0, 3, 2, 1})
	if want := []int32{0, 0, 2, 1, 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAccuracyCountsListedRowsOnly(t *testing.T) {
	labels := []int32{0, 1, 2, 2, -1}
	for _, test := range []struct {
		rows []int32
		want float64
	}{
		{[]int32{0, 1, 2, 3}, 0.75},
		{[]int32{2}, 0},
		{[]int32{0, 3}, 1},
		{[]int32{0, 4}, 1}, // row 4 has no label
		{[]int32{2, 3, 4}, 0.5},
	} {
		if got := Accuracy(five(), labels, test.rows); got != test.want {
			t.Errorf("accuracy on %v is %v, want %v", test.rows, got, test.want)
		}
	}
	for _, rows := range [][]int32{nil, {4}} {
		if got := Accuracy(five(), labels, rows); !math.IsNaN(got) {
			t.Errorf("accuracy on %v is %v, want NaN", rows, got)
		}
	}
}

func TestConfusion(t *testing.T) {
	m, err := Confuse(five(), []int32{0, 1, 2, 2, 1}, []int32{0, 1, 2, 3, 4}, 4)
	if err != nil {
		t.Fatal(err)
	}
	// predictions 0 1 1 2 0; class 3 never occurs
	if want := [][]int64{{1, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 0, 0}}; !reflect.DeepEqual(m.N, want) {
		t.Fatalf("got %v, want %v", m.N, want)
	}
	want := []Class{
		{Support: 1, Predicted: 2, Right: 1, Precision: 0.5, Recall: 1, F1: 2.0 / 3},
		{Support: 2, Predicted: 2, Right: 1, Precision: 0.5, Recall: 0.5, F1: 0.5},
		{Support: 2, Predicted: 1, Right: 1, Precision: 1, Recall: 0.5, F1: 2.0 / 3},
		{},
	}
	if got := m.Classes(); !reflect.DeepEqual(got, want) {
		t.Errorf("classes: got %v, want %v", got, want)
	}
	if got, want := m.MacroF1(), (2.0/3+0.5+2.0/3)/3; math.Abs(got-want) > 1e-15 {
		t.Errorf("macro F1 %v, want %v", got, want)
	}
	if got := m.MicroF1(); got != 0.6 || m.Accuracy() != 0.6 {
		t.Errorf("micro F1 %v and accuracy %v, want 0.6 for both", got, m.Accuracy())
	}
	const table = "" +
		"  class  rows  predicted  precision  recall      F1\n" +
		"   Arts     1          2     0.5000  1.0000  0.6667\n" +
		"   Laws     2          2     0.5000  0.5000  0.5000\n" +
		"      2     2          1     1.0000  0.5000  0.6667\n" +
		"      3     0          0     0.0000  0.0000  0.0000\n" +
		"macro F1 0.6111, micro F1 0.6000, accuracy 0.6000\n"
	if got := m.Table([]string{"Arts", "Laws"}); got != table {
		t.Errorf("table:\n%q\nwant\n%q", got, table)
	}
}

func TestConfusionOfNothing(t *testing.T) {
	m, err := Confuse(five(), []int32{-1, -1, -1, -1, -1}, []int32{0, 1}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(m.Accuracy()) || !math.IsNaN(m.MacroF1()) || !math.IsNaN(m.MicroF1()) {
		t.Errorf("accuracy %v, macro %v, micro %v: want NaN", m.Accuracy(), m.MacroF1(), m.MicroF1())
	}
}

func TestConfusionRejectsLabelsOutOfRange(t *testing.T) {
	_, err := Confuse(five(), []int32{0, 7, 0, 0, 0}, []int32{0, 1}, 3)
	const want = "confusion matrix of 3 classes: row 1 has label 7 and prediction 1"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
