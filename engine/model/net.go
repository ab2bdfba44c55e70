package model

import (
	"fmt"

	"dorylus/kernels"
)

// Net lets code outside this package write a model: each method adds a stage,
// forward and backward, and returns what it computes. Register makes it known
// under a name.
type Net struct {
	b     *builder
	layer int
}

// Value is one row per vertex, as a stage of a Net leaves it.
type Value struct {
	buf  int
	Cols int
}

// End is what a stage does to its result: add a trainable bias, apply an
// activation, drop values in training.
type End struct {
	Bias    bool
	Act     kernels.Act
	Dropout float32
}

// Register adds a model to Models. write says what it computes and returns the
// logits, Config.Classes wide. It panics if the name is taken; call it from an init
// function.
func Register(modelName string, write func(n *Net) Value) {
	if _, taken := Models[modelName]; taken {
		panic(fmt.Sprintf("model: %q is registered twice", modelName))
	}
	Models[modelName] = func(cfg Config) *Program {
		n := &Net{b: newBuilder(cfg)}
		out := write(n)
		if out.Cols != cfg.Classes {
			panic(fmt.Sprintf("model: %s returns %d columns for %d classes", modelName, out.Cols, cfg.Classes))
		}
		n.b.loss(out.buf)
		return n.b.finish()
	}
}

// Config is what the model is built for.
func (n *Net) Config() Config { return n.b.cfg }

// X are the features, under input dropout in training. Sparse ones can only go into
// a Linear.
func (n *Net) X() Value { return Value{X, n.b.cfg.Features} }

func (n *Net) end(e End, weight string, cols int) epilogue {
	ep := epilogue{bias: NoBuf, act: e.Act, drop: e.Dropout, layer: n.layer}
	if e.Bias {
		ep.bias = n.b.param(ParamSpec{Name: fmt.Sprintf("%s%d.bias", weight, n.layer), Rows: 1, Cols: cols, Layer: n.layer, Bias: true})
	}
	return ep
}

// Linear is v·W, then e.
func (n *Net) Linear(v Value, cols int, e End) Value {
	n.layer++
	spec := ParamSpec{Name: fmt.Sprintf("lin%d.weight", n.layer), Rows: v.Cols, Cols: cols, Init: Glorot, Transposed: true, Layer: n.layer}
	return Value{n.b.linear(v.buf, n.layer, spec, n.end(e, "lin", cols)), cols}
}

// Gather is the normalised sum over in-neighbours, then e. The gather of constant
// features is made once and kept.
func (n *Net) Gather(v Value, norm Norm, e End) Value {
	n.layer++
	if v.buf == X {
		if n.b.cfg.Sparse {
			panic("model: sparse features cannot be gathered: multiply them first")
		}
		if n.b.keeps(v.buf) && e == (End{}) {
			return Value{n.b.kept(fmt.Sprintf("gather%d(X)", norm), X, norm), v.Cols}
		}
		v.buf = n.b.droppedInput()
	}
	return Value{n.b.gather(v.buf, n.layer, norm, n.end(e, "gather", v.Cols)), v.Cols}
}

// SAGE is GraphSAGE's convolution, GIN that of GIN and GCN that of GCN, each with
// the parameters that PyG's layer of that name has.
func (n *Net) SAGE(v Value, cols int, e End) Value { return n.conv(v, cols, e, n.b.sage) }

// GIN is described at SAGE.
func (n *Net) GIN(v Value, cols int, e End) Value { return n.conv(v, cols, e, n.b.gin) }

// GCN is described at SAGE.
func (n *Net) GCN(v Value, cols int, e End) Value { return n.conv(v, cols, e, n.b.gcn) }

// conv adds a convolution, which names its own bias.
func (n *Net) conv(v Value, cols int, e End, add func(h, width, out, l int, e epilogue) int) Value {
	n.layer++
	bias := n.b.cfg.Bias
	n.b.cfg.Bias = e.Bias
	out := add(v.buf, v.Cols, cols, n.layer, epilogue{bias: NoBuf, act: e.Act, drop: e.Dropout, layer: n.layer})
	n.b.cfg.Bias = bias
	return Value{out, cols}
}
