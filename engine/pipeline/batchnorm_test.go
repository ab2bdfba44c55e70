package pipeline

import (
	"testing"
)

// A vertex that the loss cannot reach has no part in the statistics of batch
// normalisation, though the level that it is in is computed as a whole.
func TestBatchNormLeavesOutWhatTheLossCannotSee(t *testing.T) {
	train := func(value float32, partOfIt bool) *Result {
		r := small(60, 9)
		r.Splits[0].Train = nil
		for v := range r.N {
			if v > 2 || v == 0 && partOfIt {
				r.Splits[0].Train = append(r.Splits[0].Train, int32(v))
			}
		}
		r.Splits[0].Val, r.Splits[0].Test = []int32{1}, []int32{2}
		// Vertex 0 stands alone.
		for i := range r.Src {
			if r.Src[i] == 0 {
				r.Src[i] = 1
			}
			if r.Dst[i] == 0 {
				r.Dst[i] = 1
			}
		}
		for c := range r.Dense.Cols {
			r.Dense.Row(0)[c] = value
		}
		return mustTrain(t, options(t, on(build(t, r, "natural"), func(o *Options) {
			o.Config.Norm, o.Config.Epochs, o.Config.Layers = "batch", 5, 3
		})))
	}
	want := train(0, false).WeightsSHA256
	if got := train(1e4, false).WeightsSHA256; got != want {
		t.Errorf("the features of a vertex that no loss reaches changed the weights: %.12s, want %.12s", got, want)
	}
	if train(0, true).WeightsSHA256 == train(1e4, true).WeightsSHA256 {
		t.Error("the features of a training vertex changed nothing: the test shows nothing")
	}
}
