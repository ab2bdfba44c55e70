package pipeline

import (
	"context"
	"fmt"
	"testing"

	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// Several devices, of memory of their own or not, predict the bits of one, each vertex
// once.
func TestDevicesPredictTheSame(t *testing.T) {
	m := modelCases[0]
	o := m.options(t, 5)
	trained := mustTrain(t, o)
	ask := PredictOptions{Model: trained.State.Model, Weights: trained.State.Params.Weights, Store: o.Store, Threads: 2}
	one := ask
	one.Device = o.Device
	want, err := Predict(context.Background(), one)
	check(t, err)
	for name, open := range map[string]func() (kernels.Device, error){"host": hosts, "opaque": opaques} {
		for _, n := range []int{1, 2, 3} {
			var got *kernels.Mat
			seen := map[int32]int{}
			put := ask.whole(&got)
			check(t, PredictRowsOn(context.Background(), ask, several(t, n, open), Outputs{Logits: func(r Rows) error {
				for _, v := range r.Vertices {
					seen[v]++
				}
				return put(r)
			}}))
			what := fmt.Sprintf("%d %s devices", n, name)
			if d := testkit.Far(want, got, 0); d != "" {
				t.Errorf("%s: the logits%s", what, d)
			}
			for v, times := range seen {
				if times != 1 {
					t.Errorf("%s: vertex %d came %d times", what, v, times)
				}
			}
		}
	}
}
