package plan

import (
	"fmt"
	"slices"
	"testing"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// A twin of the worker and the graph server that knows versions only: whatever a worker
// has lost before a step, the replay gives the step what it needs.
func TestReplayBringsBackWhatIsLost(t *testing.T) {
	for _, name := range model.Names() {
		for n := range 4 {
			norm, sparse := []string{"", "batch"}[n%2], n >= 2
			what := fmt.Sprintf("%s, norm %q, sparse %v", name, norm, sparse)
			cfg := model.Config{Model: name, Layers: 3, Hidden: 8, Features: 50, Classes: 4, Heads: 2, OutHeads: 1, Hops: 2, Alpha: 0.1,
				Dropout: 0.5, InputDropout: 0.5, Norm: norm, Sparse: sparse, Bias: true, Activation: kernels.ReLU}
			prog, err := cfg.Build()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			p := New(prog, len(prog.Steps))
			server := map[int]int{} // by buffer: the step that has set what the graph server has
			for s := range prog.Steps {
				step := p.Steps[s]
				if step == nil {
					for _, b := range prog.Steps[s].Out {
						server[b] = s
					}
					continue
				}
				fresh := map[int]int{}
				for _, r := range append(p.Replay(s, func(Version) bool { return false }), s) {
					for _, v := range p.Steps[r].Needs {
						if v.Step < 0 {
							continue
						}
						if at, ok := fresh[v.Buf]; ok && at == v.Step {
							continue
						}
						if at, ok := server[v.Buf]; !ok || at != v.Step {
							t.Errorf("%s: step %d, in the replay for step %d, needs %s of step %d: the worker has %v, the graph server %v",
								what, r, s, prog.Bufs[v.Buf].Name, v.Step, fresh[v.Buf], server[v.Buf])
						}
						fresh[v.Buf] = v.Step
					}
					for _, b := range prog.Steps[r].Out {
						fresh[b] = r
					}
				}
				for _, b := range step.Ships {
					server[b] = s
					if prog.Bufs[b].Edges {
						t.Errorf("%s: step %d ships %s, which has no rows", what, s, prog.Bufs[b].Name)
					}
				}
				if both := len(step.Ships) + len(step.Keeps); both != len(prog.Steps[s].Out) {
					t.Errorf("%s: step %d sets %d buffers, of which %d are shipped or kept", what, s, len(prog.Steps[s].Out), both)
				}
			}
			last := Version{prog.Output, p.writer(prog.Output, prog.Forward)}
			if at := server[prog.Output]; p.tensor(last.Step) && !slices.Contains(p.Steps[last.Step].Ships, prog.Output) {
				t.Errorf("%s: the output of step %d stays with workers; the graph server has that of %d", what, last.Step, at)
			}
		}
	}
}
