package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dorylus/kernels"
)

// Config says which model to build on which data.
type Config struct {
	Model      string // a key of Models
	Layers     int    // at least 1
	Hidden     int    // width of all layers but the last
	Bias       bool
	Activation kernels.Act
	// Dropout is the rate on the hidden layers' inputs, InputDropout on the
	// features, both in [0,1).
	Dropout, InputDropout float32

	// AttentionDropout is GAT's rate on attention coefficients, Heads its number of
	// heads in all layers but the last, OutHeads in the last, whose outputs are
	// averaged.
	AttentionDropout float32
	Heads, OutHeads  int
	// Aggregator is GraphSAGE's: "mean" (or "") or "max".
	Aggregator string
	// Hops is how often sgc and appnp propagate, Alpha appnp's share of the
	// prediction itself in each hop, in [0,1].
	Hops  int
	Alpha float32
	// Residual adds each layer's input to its output, through a product where the
	// widths differ; Norm is "", "layer" or "batch". Neither touches the last layer.
	Residual bool
	Norm     string
	// JumpingKnowledge computes the logits from all layers, which are all hidden
	// ones then, instead of the last one alone.
	JumpingKnowledge bool

	Features int // input width
	Classes  int // output width
	// MultiLabel: a vertex may have several classes; the loss is binary
	// cross-entropy of each, not softmax cross-entropy.
	MultiLabel bool
	Sparse     bool // features are CSR: their product comes before the gather
	// NoCache gathers constant features anew in every epoch, with the product first where
	// that leaves narrower rows.
	NoCache bool `json:",omitempty"`
}

// Models maps the names of --model to their builders.
var Models = map[string]func(Config) *Program{
	"gcn":   GCN,
	"mlp":   MLP,
	"sage":  SAGE,
	"gin":   GIN,
	"gat":   GAT,
	"sgc":   SGC,
	"appnp": APPNP,
}

// Names lists the known models, sorted.
func Names() []string {
	names := make([]string, 0, len(Models))
	for n := range Models {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Validate reports every problem of c at once.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	if _, ok := Models[c.Model]; !ok {
		bad("%q is unknown: choose one of %s", c.Model, strings.Join(Names(), ", "))
	}
	if c.Layers < 1 {
		bad("%d layers: at least 1 is needed", c.Layers)
	}
	if c.Hidden < 1 {
		bad("hidden width %d: at least 1 is needed", c.Hidden)
	}
	if c.Hops < 0 {
		bad("%d hops: 0 or more are needed", c.Hops)
	}
	if !(c.Alpha >= 0 && c.Alpha <= 1) {
		bad("alpha %v is not in [0,1]", c.Alpha)
	}
	for _, d := range []struct {
		what string
		p    float32
	}{{"dropout", c.Dropout}, {"input dropout", c.InputDropout}} {
		if !(d.p >= 0 && d.p < 1) {
			bad("%s %v is not in [0,1)", d.what, d.p)
		}
	}
	if c.Features < 1 {
		bad("the data has no features: give the vertices some, for example identity features with 'prepare --features identity'")
	}
	if c.Classes < 2 && !(c.MultiLabel && c.Classes == 1) {
		bad("the data has %d classes: at least 2 are needed to classify", c.Classes)
	}
	return errors.Join(errs...)
}

// Build makes the program of a valid config.
func (c Config) Build() (*Program, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return Models[c.Model](c), nil
}

// String is the model in few words: "gcn 2x16", layers by hidden width.
func (c Config) String() string { return fmt.Sprintf("%s %dx%d", c.Model, c.Layers, c.Hidden) }
