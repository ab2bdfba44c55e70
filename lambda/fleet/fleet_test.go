package fleet

import (
	"fmt"
	"testing"

	"dorylus/engine"
	"dorylus/engine/testkit"
)

func TestSameBitsAsTheCores(t *testing.T) {
	testkit.Leaks(t)
	st, dev := cora(t), device(t)
	models, workers := []string{"gcn", "gat", "sage", "gin"}, []int{1, 3, 8}
	if raceEnabled {
		models, workers = models[1:2], workers[1:2]
	}
	for _, model := range models {
		set := func(c *engine.Config) { *c = engine.DefaultConfig(model); c.Epochs, c.Intervals = 3, 4 }
		want := train(t, options(t, st, dev, set), nil)
		for _, n := range workers {
			t.Run(fmt.Sprintf("%s, %d workers", model, n), func(t *testing.T) {
				f := (&inProcess{dev: dev}).start(t, Options{Workers: n})
				o := options(t, st, dev, set)
				got := train(t, o, f)
				s := f.Stats()
				t.Logf("%+v", s)
				sameBits(t, "workers", want, got)
				if s.Own > 0 || s.Tasks == 0 {
					t.Errorf("%d tasks by workers, %d by the graph server", s.Tasks, s.Own)
				}
				d := o.Listener.(*diary)
				if came, left := len(all[engine.WorkerCame](d)), len(all[engine.WorkerLeft](d)); came != s.Workers || left != s.Workers {
					t.Errorf("%d workers, events tell of %d that came and %d that left", s.Workers, came, left)
				}
			})
		}
	}
}
