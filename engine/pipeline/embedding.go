package pipeline

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// Embed is the last hidden representation of all vertices in the user's order, without
// dropout: what the last layer reads.
//
//   - gcn, gat, sage, gin, mlp: the output of the last layer but one, after its
//     normalisation and activation; gat's heads lie side by side.
//   - appnp: that of its MLP, before the propagation.
//   - with jumping knowledge: the output of the last layer, all of which the logits read.
//   - sgc: the propagated features Â^K·X, dense.
//
// A model of one layer has none: it reads the features.
func Embed(ctx context.Context, o PredictOptions) (*kernels.Mat, error) {
	var all *kernels.Mat
	err := PredictRows(ctx, o, Outputs{Embedding: o.whole(&all)})
	return all, err
}

// hidden is the buffer that Embed describes: the last one that the layer has made and
// that a forward step reads. A buffer's name ends with its layer's number.
func hidden(c model.Config, prog *model.Program) (int, error) {
	if c.Model == "sgc" {
		if buf := prog.Steps[0].In[0]; c.Hops > 0 {
			return buf, nil
		}
		return 0, fmt.Errorf("sgc without hops has no hidden representation: it reads the features themselves")
	}
	layer, width := c.Layers-1, c.Hidden
	if c.Model == "gat" {
		width *= c.Heads
	}
	if c.JumpingKnowledge {
		// The same program with logits as wide as nothing else, to tell them apart.
		layer = c.Layers
		c.Classes = 8*width + 8
		var err error
		if prog, err = c.Build(); err != nil {
			return 0, err
		}
	}
	if layer == 0 {
		return 0, fmt.Errorf("a %s of one layer has no hidden representation, it reads the features themselves: train with --layers=2 or more, or write --scores", c.Model)
	}
	found := model.NoBuf
	for _, s := range prog.Steps[:prog.Forward] {
		for _, b := range s.In {
			of := prog.Bufs[b]
			propagated := c.Model == "appnp" && of.Level > 0 // hops are numbered as layers are
			// Gradients and what only they read are there where a loss is fused to the last step.
			back := strings.HasPrefix(of.Name, "d") || strings.HasPrefix(of.Name, "lse") || strings.HasPrefix(of.Name, "stat")
			if of.Cols == width && !of.PerBlock && !propagated && !back && numbered(of.Name) == layer {
				found = max(found, b)
			}
		}
	}
	if found == model.NoBuf {
		return 0, fmt.Errorf("the model %s does not say which of its values are those of hidden layer %d", c.Model, layer)
	}
	return found, nil
}

// numbered is the number at the end of a name, -1 for none.
func numbered(name string) int {
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}
