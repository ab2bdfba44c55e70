package metric

import (
	"math"
	"math/rand/v2"
	"testing"

	"dorylus/kernels"
)

// pairs is the area by its definition: over all pairs of a positive and a negative.
func pairs(score []float64, positive []bool) float64 {
	right, all := 0.0, 0.0
	for i := range score {
		for j := range score {
			if !positive[i] || positive[j] {
				continue
			}
			all++
			switch {
			case score[i] > score[j]:
				right++
			case score[i] == score[j]:
				right += 0.5
			}
		}
	}
	return right / all // NaN for 0/0
}

func same(a, b, tolerance float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tolerance
}

func TestRankAUCByHand(t *testing.T) {
	for _, test := range []struct {
		x    []Scored
		want float64
	}{
		{nil, math.NaN()},
		{[]Scored{{1, true}}, math.NaN()},
		{[]Scored{{1, false}, {2, false}}, math.NaN()},
		{[]Scored{{2, true}, {1, false}}, 1},
		{[]Scored{{1, true}, {2, false}}, 0},
		{[]Scored{{1, true}, {1, false}}, 0.5},
		{[]Scored{{math.Inf(1), true}, {math.Inf(-1), false}, {0, false}}, 1},
		{[]Scored{{math.NaN(), true}, {1, false}}, math.NaN()},
		{[]Scored{{0.1, false}, {0.4, false}, {0.35, true}, {0.8, true}}, 0.75}, // the example of scikit-learn
		{[]Scored{{0, true}, {math.Copysign(0, -1), false}}, 0.5},
	} {
		if got := RankAUC(test.x); !same(got, test.want, 0) {
			t.Errorf("%v: %v, want %v", test.x, got, test.want)
		}
	}
}

func TestRankAUCAgainstPairs(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n, levels := 1+rng.IntN(40), 1+rng.IntN(30) // few levels: many ties
		x := make([]Scored, n)
		score, positive := make([]float64, n), make([]bool, n)
		for i := range x {
			score[i], positive[i] = float64(rng.IntN(levels))/7, rng.IntN(3) == 0
			x[i] = Scored{score[i], positive[i]}
		}
		want := pairs(score, positive)
		if got := RankAUC(x); !same(got, want, 1e-15) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// random are logits with ties and labels of classes, some rows without a label.
func random(rng *rand.Rand, n, classes int) (*kernels.Mat, []int32) {
	logits := kernels.FromSlice(n, classes, make([]float32, n*classes))
	labels := make([]int32, n)
	for r := range n {
		for c := range classes {
			logits.Row(r)[c] = float32(rng.IntN(9)-4) / 2
		}
		labels[r] = int32(rng.IntN(classes+1)) - 1
	}
	return logits, labels
}

func TestAUCAgainstPairs(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		classes := 2 + rng.IntN(4)
		logits, labels := random(rng, 60, classes)
		rows := []int32{}
		for _, r := range rng.Perm(60)[:30] {
			rows = append(rows, int32(r))
		}
		sum, counted := 0.0, 0.0
		for c := range classes {
			var score []float64
			var positive []bool
			for _, r := range rows {
				if labels[r] < 0 {
					continue
				}
				// The probability, rounded so that what is equal on paper is equal here.
				total := 0.0
				for _, z := range logits.Row(int(r)) {
					total += math.Exp(float64(z))
				}
				p := math.Exp(float64(logits.Row(int(r))[c])) / total
				score, positive = append(score, math.Round(p*1e12)), append(positive, int(labels[r]) == c)
			}
			if a := pairs(score, positive); !math.IsNaN(a) && (classes > 2 || c == 1) {
				sum += a
				counted++
			}
		}
		if got := AUC(logits, labels, rows); !same(got, sum/counted, 1e-12) {
			t.Fatalf("seed %d, %d classes: %v, want %v", seed, classes, got, sum/counted)
		}
	}
}

// TestAUCOfSureRows: where softmax rounds to 1 the logits still rank.
func TestAUCOfSureRows(t *testing.T) {
	two := kernels.FromSlice(3, 2, []float32{0, 500, 0, 700, 0, 600})
	if got := AUC(two, []int32{0, 1, 1}, []int32{0, 1, 2}); got != 1 {
		t.Errorf("two classes: %v, want 1", got)
	}
	three := kernels.FromSlice(3, 3, []float32{0, 500, 0, 0, 700, 0, 0, 600, 0})
	// class 1: rows 1 and 2 above row 0; class 0: row 0 is the least unsure; class 2 has no row
	if got := AUC(three, []int32{0, 1, 1}, []int32{0, 1, 2}); got != 1 {
		t.Errorf("three classes: %v, want 1", got)
	}
	if got := AUC(two, []int32{-1, 1, 1}, []int32{0, 1, 2}); !math.IsNaN(got) {
		t.Errorf("one class only: %v, want NaN", got)
	}
	three.Host[4] = nan
	if got := AUC(three, []int32{0, 1, 1}, []int32{0, 1, 2}); !math.IsNaN(got) {
		t.Errorf("a NaN among the logits: %v, want NaN", got)
	}
}
