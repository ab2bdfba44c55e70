package metric

import (
	"cmp"
	"math"
	"slices"

	"dorylus/kernels"
)

// AUC is the area under the ROC curve over rows with a label of at least 0. With two
// classes the score of a row is how much class 1's logit exceeds class 0's. With more
// it is the mean of one class against the rest, over the classes that some rows have
// and some have not, where a row's score is the log-odds of the class's softmax
// probability. NaN where no class is such, or a logit is NaN.
func AUC(logits *kernels.Mat, labels, rows []int32) float64 {
	known := make([]int32, 0, len(rows))
	for _, r := range rows {
		if labels[r] >= 0 {
			known = append(known, r)
		}
	}
	first := 0
	if logits.Cols == 2 {
		first = 1 // class 0 against the rest is the same question
	}
	return meanAUC(first, logits.Cols, len(known), func(c, i int) (float64, bool) {
		return logOdds(logits.Row(int(known[i])), c), int(labels[known[i]]) == c
	})
}

// SetAUC is AUC where a row may have several classes, those that it lists in targets:
// the mean over classes, and a row's score for a class is its logit.
func SetAUC(logits *kernels.Mat, targets *kernels.CSR, rows []int32) float64 {
	return meanAUC(0, logits.Cols, len(rows), func(c, i int) (float64, bool) {
		r := rows[i]
		_, has := slices.BinarySearch(targets.Col[targets.RowPtr[r]:targets.RowPtr[r+1]], int32(c))
		return float64(logits.Row(int(r))[c]), has
	})
}

// meanAUC is the mean RankAUC of classes [first,classes), those without one left out.
// at is the score of row i of n for class c, and whether it has the class.
func meanAUC(first, classes, n int, at func(c, i int) (float64, bool)) float64 {
	scored := make([]Scored, n)
	sum, counted := 0.0, 0
	for c := first; c < classes; c++ {
		positives := 0
		for i := range scored {
			scored[i].Score, scored[i].Positive = at(c, i)
			if math.IsNaN(scored[i].Score) {
				return math.NaN()
			}
			if scored[i].Positive {
				positives++
			}
		}
		if positives == 0 || positives == n {
			continue
		}
		sum += RankAUC(scored)
		counted++
	}
	if counted == 0 {
		return math.NaN()
	}
	return sum / float64(counted)
}

// logOdds is log(p/(1-p)) for the softmax probability p of class c: unlike p, it does
// not become 1 for all rows that are sure enough.
func logOdds(row []float32, c int) float64 {
	top := math.Inf(-1)
	for k, x := range row {
		if k != c {
			top = max(top, float64(x)) // NaN if one is
		}
	}
	if len(row) == 2 || math.IsInf(top, 0) {
		return float64(row[c]) - top
	}
	rest := 0.0
	for k, x := range row {
		if k != c {
			rest += math.Exp(float64(x) - top)
		}
	}
	// As precise as logits are: what differs by the rounding of the sum alone is equal.
	return float64(float32(float64(row[c]) - top - math.Log(rest)))
}

// Scored is one row as a binary classifier sees it.
type Scored struct {
	Score    float64
	Positive bool
}

// RankAUC is the probability that a positive row scores higher than a negative one,
// where equal scores count half: the area under the ROC curve. It sorts x. Counts are
// whole numbers, so the order of x has no part in the result. NaN if all rows are
// positive or all negative, or a score is NaN.
func RankAUC(x []Scored) float64 {
	slices.SortFunc(x, func(a, b Scored) int { return cmp.Compare(a.Score, b.Score) })
	if len(x) > 0 && math.IsNaN(x[0].Score) { // NaNs come first
		return math.NaN()
	}
	var positives, negatives, twice int64 // twice the pairs in the right order
	for lo := 0; lo < len(x); {
		var up, down int64 // of the rows with this score
		hi := lo
		for ; hi < len(x) && x[hi].Score == x[lo].Score; hi++ {
			if x[hi].Positive {
				up++
			} else {
				down++
			}
		}
		twice += up * (2*negatives + down)
		positives, negatives, lo = positives+up, negatives+down, hi
	}
	if positives == 0 || negatives == 0 {
		return math.NaN()
	}
	return float64(twice) / (2 * float64(positives) * float64(negatives))
}
