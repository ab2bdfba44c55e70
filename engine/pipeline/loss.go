package pipeline

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// lossShape is how rows and classes weigh in the loss.
type lossShape struct {
	classW *kernels.Mat // 1 x classes, or nil: all 1
	scale  float32      // one over the sum of weights that the loss averages over
}

// lossOf makes the loss a mean over the training rows: over their class weights, as
// PyTorch's CrossEntropyLoss does, or for multi-label data over rows and classes,
// as BCEWithLogitsLoss does, the weights then being those of the positives.
func lossOf(c *engine.Config, st *store.Store, s dataset.Split) (lossShape, error) {
	w, err := classWeights(c.ClassWeights, st, s)
	if err != nil {
		return lossShape{}, err
	}
	if st.Multi != nil {
		return lossShape{w, 1 / (float32(len(s.Train)) * float32(st.Meta.Classes))}, nil
	}
	if w == nil {
		return lossShape{nil, 1 / float32(len(s.Train))}, nil
	}
	sum := 0.0
	for _, v := range s.Train {
		sum += float64(w.Host[st.Labels[v]])
	}
	if !(sum > 0) {
		return lossShape{}, fmt.Errorf("--class-weights=%s: the weights of the training vertices add up to %v: give at least one of their classes a weight above 0", c.ClassWeights, sum)
	}
	return lossShape{w, float32(1 / sum)}, nil
}

// classWeights are the weights that a setting asks for: nil for none.
func classWeights(setting string, st *store.Store, s dataset.Split) (*kernels.Mat, error) {
	n := st.Meta.Classes
	switch setting {
	case "":
		return nil, nil
	case "balanced":
		return balanced(st, s), nil
	}
	f, err := os.Open(setting)
	if err != nil {
		return nil, fmt.Errorf("--class-weights: %w: name a file with one weight a line, or write balanced", err)
	}
	defer f.Close()
	w := kernels.FromSlice(1, n, make([]float32, n))
	line, got := 0, 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line++
		text := strings.TrimSpace(sc.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		x, err := strconv.ParseFloat(text, 32)
		if err != nil || !(x >= 0) {
			return nil, fmt.Errorf("--class-weights=%s: line %d: %q is no weight of 0 or more", setting, line, text)
		}
		if got < n {
			w.Host[got] = float32(x)
		}
		got++
	}
	if got != n {
		return nil, fmt.Errorf("--class-weights=%s: it has %d weights for %d classes: give one a line, in the order of the classes", setting, got, n)
	}
	return w, nil
}

// balanced weighs each class by the inverse of its share of the training rows:
// rows/(classes·rows of the class), as scikit-learn does; for multi-label data each
// class's positives by the ratio of its negatives to them. A class without a
// training row has weight 1: nothing is weighed by it.
func balanced(st *store.Store, s dataset.Split) *kernels.Mat {
	n := st.Meta.Classes
	count := make([]float64, n)
	for _, v := range s.Train {
		if st.Multi == nil {
			count[st.Labels[v]]++
			continue
		}
		for _, c := range st.Multi.Col[st.Multi.RowPtr[v]:st.Multi.RowPtr[v+1]] {
			count[c]++
		}
	}
	w := kernels.FromSlice(1, n, make([]float32, n))
	for c, k := range count {
		switch {
		case k == 0:
			w.Host[c] = 1
		case st.Multi == nil:
			w.Host[c] = float32(float64(len(s.Train)) / (float64(n) * k))
		default:
			w.Host[c] = float32((float64(len(s.Train)) - k) / k)
		}
	}
	return w
}
