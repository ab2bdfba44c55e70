package metric

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"dorylus/kernels"
)

// four rows of three classes: rows 0 and 3 all right, 1 has one too many, 2 misses both.
func four() (*kernels.Mat, *kernels.CSR) {
	return kernels.FromSlice(4, 3, []float32{
			1, -1, 2,
			1, 1, -1,
			0, -1, nan,
			-1, -1, -1,
		}), &kernels.CSR{Cols: 3, RowPtr: []int64{0, 3, 4, 6, 6}, Col: []int32{
			0, 2, 2, // a repeat
			1,
			0, 2,
		}}
}

func TestSetsByHand(t *testing.T) {
	logits, targets := four()
	m, err := CountSets(logits, targets, []int32{0, 1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	want := &Sets{TP: []int64{1, 1, 1}, FP: []int64{1, 0, 0}, FN: []int64{1, 0, 1}, Exact: 2, Rows: 4}
	if !reflect.DeepEqual(m, want) {
		t.Fatalf("got %+v, want %+v", m, want)
	}
	// F1: 2/4, 2/2, 2/3; together 6/9
	if got := m.MicroF1(); got != 6.0/9 {
		t.Errorf("micro F1 %v, want 6/9", got)
	}
	if got := m.MacroF1(); math.Abs(got-(0.5+1+2.0/3)/3) > 1e-15 {
		t.Errorf("macro F1 %v, want 13/18", got)
	}
	if got := m.Accuracy(); got != 0.5 {
		t.Errorf("accuracy %v, want 0.5", got)
	}
	const table = "" +
		"  class  rows  predicted  precision  recall      F1\n" +
		"   jazz     2          2     0.5000  0.5000  0.5000\n" +
		"      1     1          1     1.0000  1.0000  1.0000\n" +
		"      2     2          1     1.0000  0.5000  0.6667\n" +
		"macro F1 0.7222, micro F1 0.6667, rows with all labels right 0.5000\n"
	if got := m.Table([]string{"jazz"}); got != table {
		t.Errorf("table:\n%s\nwant\n%s", got, table)
	}
}

// TestSetsAgainstBruteForce compares with counts over a dense table, block by block.
func TestSetsAgainstBruteForce(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n, classes := 1+rng.IntN(30), 1+rng.IntN(6)
		logits, _ := random(rng, n, classes)
		targets := &kernels.CSR{Cols: classes, RowPtr: []int64{0}}
		has := make([][]bool, n)
		for r := range n {
			has[r] = make([]bool, classes)
			for c := range classes {
				if has[r][c] = rng.IntN(3) == 0; has[r][c] {
					targets.Col = append(targets.Col, int32(c))
				}
			}
			targets.RowPtr = append(targets.RowPtr, int64(len(targets.Col)))
		}
		var rows []int32
		for r := range n {
			if rng.IntN(4) > 0 {
				rows = append(rows, int32(r))
			}
		}
		tp, wrong, f1, auc, aucs := 0.0, 0.0, 0.0, 0.0, 0.0
		bad := map[int32]bool{}
		for c := range classes {
			ct, cw := 0.0, 0.0
			var score []float64
			var positive []bool
			for _, r := range rows {
				given := 1/(1+math.Exp(-float64(logits.Row(int(r))[c]))) > 0.5
				switch {
				case given && has[r][c]:
					ct++
				case given != has[r][c]:
					cw++
					bad[r] = true
				}
				score, positive = append(score, float64(logits.Row(int(r))[c])), append(positive, has[r][c])
			}
			tp, wrong = tp+ct, wrong+cw
			if ct > 0 {
				f1 += 2 * ct / (2*ct + cw)
			}
			if a := pairs(score, positive); !math.IsNaN(a) {
				auc, aucs = auc+a, aucs+1
			}
		}
		exact := float64(len(rows)-len(bad)) / float64(len(rows))
		micro, macro := 0.0, f1/float64(classes)
		if tp > 0 {
			micro = 2 * tp / (2*tp + wrong)
		}
		if len(rows) == 0 {
			micro, macro = math.NaN(), math.NaN()
		}
		half := len(rows) / 2
		m, err := CountSets(logits, targets, rows[:half])
		if err != nil {
			t.Fatal(err)
		}
		rest, err := CountSets(logits, targets, rows[half:])
		if err != nil {
			t.Fatal(err)
		}
		m.Merge(rest)
		for _, x := range []struct {
			name      string
			got, want float64
		}{
			{"micro F1", m.MicroF1(), micro}, {"macro F1", m.MacroF1(), macro}, {"accuracy", m.Accuracy(), exact},
			{"AUC", SetAUC(logits, targets, rows), auc / aucs},
		} {
			if !same(x.got, x.want, 1e-12) {
				t.Fatalf("seed %d: %s is %v, want %v", seed, x.name, x.got, x.want)
			}
		}
	}
}

func TestSetsRejectOtherShapes(t *testing.T) {
	logits, targets := four()
	targets.Cols = 5
	if _, err := CountSets(logits, targets, nil); err == nil || !strings.Contains(err.Error(), "logits are 4 x 3, targets 4 x 5") {
		t.Errorf("got %v", err)
	}
}

func TestMeasure(t *testing.T) {
	logits, targets := four()
	single := Truth{Labels: []int32{0, 1, 2, 0}}
	rows := []int32{0, 1, 2, 3} // predicted 2 0 0 0
	for _, c := range []struct {
		name            string
		truth           Truth
		rows            []int32
		value, accuracy float64
	}{
		{"accuracy", single, rows, 0.25, 0.25},
		{"micro-f1", single, rows, 0.25, 0.25},
		{"macro-f1", single, rows, (2.0 / 5) / 3, 0.25},
		{"roc-auc", single, []int32{0, 1}, 0.5, 0}, // class 0 at 0, class 1 at 1, and class 2 has no row
		{"accuracy", Truth{Sets: targets}, rows, 0.5, 0.5},
		{"micro-f1", Truth{Sets: targets}, rows, 6.0 / 9, 0.5},
		{"roc-auc", Truth{Sets: targets}, []int32{0, 1, 3}, (0.75 + 1 + 1) / 3, 2.0 / 3},
		{"macro-f1", single, nil, math.NaN(), math.NaN()},
		{"roc-auc", Truth{Sets: targets}, nil, math.NaN(), math.NaN()},
	} {
		value, accuracy, err := Measure(c.name, logits, c.truth, c.rows)
		if err != nil || !same(value, c.value, 1e-15) || !same(accuracy, c.accuracy, 1e-15) {
			t.Errorf("%s of %v: %v and accuracy %v, want %v and %v (%v)", c.name, c.rows, value, accuracy, c.value, c.accuracy, err)
		}
	}
	if _, _, err := Measure("auc", logits, single, rows); err == nil || !strings.Contains(err.Error(), `"auc"`) {
		t.Errorf("an unknown metric: %v", err)
	}
	if a, b, c := single.Name(""), (Truth{Sets: targets}).Name(""), single.Name("roc-auc"); a != "accuracy" || b != "micro-f1" || c != "roc-auc" {
		t.Errorf("the usual metrics are %s and %s, and roc-auc is %s", a, b, c)
	}
}

func TestMatrix(t *testing.T) {
	m := &Confusion{N: [][]int64{{12, 0}, {3, 4}}}
	const want = "Classes (lines) and what was predicted (columns):\n" +
		"  class  #   0  1\n" +
		"   Arts  0  12  0\n" +
		"      1  1   3  4\n"
	if got := m.Matrix([]string{"Arts"}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	large := &Confusion{N: make([][]int64, 30)}
	for c := range large.N {
		large.N[c] = make([]int64, 30)
		large.N[c][c], large.N[c][(c+1)%30] = 100, int64(c)
	}
	got := large.Matrix(nil)
	if lines := strings.Split(got, "\n"); len(lines) != fullMatrix+3 || lines[0] != "The most frequent confusions, of 29 kinds:" ||
		strings.Join(strings.Fields(lines[2]), " ") != "29 0 29" || strings.Join(strings.Fields(lines[3]), " ") != "28 29 28" {
		t.Errorf("of 30 classes:\n%s", got)
	}
}
