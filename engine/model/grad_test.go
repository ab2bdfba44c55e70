package model

import (
	"testing"

	"dorylus/engine/task"
)

// What the backward half sets is marked as a gradient, and what the forward half makes of
// a layer's width is not.
func TestGradientsAreMarked(t *testing.T) {
	built := 0
	for name := range Models {
		for _, change := range []func(*Config){
			func(*Config) {},
			func(c *Config) { c.Norm, c.Residual, c.Layers = "batch", true, 3 },
			func(c *Config) { c.Norm, c.JumpingKnowledge, c.Aggregator = "layer", true, "max" },
			func(c *Config) { c.Sparse, c.InputDropout = true, 0.5 },
		} {
			cfg := Config{Model: name, Layers: 2, Features: 8, Hidden: 4, Classes: 3, Heads: 2, OutHeads: 1, Hops: 2, Aggregator: "mean"}
			change(&cfg)
			p, err := cfg.Build()
			if err != nil {
				continue // a combination that the model does not have
			}
			for i, s := range p.Steps {
				for _, b := range s.Out {
					switch buf := p.Bufs[b]; {
					case buf.PerBlock:
					case s.Dir == task.Backward && !buf.Grad:
						t.Errorf("%s: %s is set by %s of step %d and not marked", name, buf.Name, s.Name, i)
					case i < p.Forward-1 && buf.Grad && buf.Cols == cfg.Hidden:
						t.Errorf("%s: %s is marked and set before the loss", name, buf.Name)
					}
				}
			}
			if !p.Bufs[p.Output].Grad && len(p.Steps) > p.Forward {
				built++
			}
		}
	}
	if built < len(Models) {
		t.Errorf("%d programs were looked at", built)
	}
}
