// Package optim updates weights with PyTorch's semantics: Adam, AdamW and SGD
// with momentum, L2 on the parameters that Scope names, schedules of the learning
// rate, and gradients clipped by their norm.
package optim

import (
	"errors"
	"fmt"
	"math"

	"dorylus/engine/model"
)

// Config says how weights are updated. Zero means default where a default is
// named.
type Config struct {
	// Name is "adam" (default), "adamw" or "sgd".
	Name string `json:"name"`
	// LR is the learning rate, the largest of a schedule that falls; default 0.01.
	LR float64 `json:"lr"`
	// WeightDecay is the L2 penalty of adam and sgd, added to the gradient, and
	// the decoupled decay of adamw. 0: none.
	WeightDecay float64 `json:"weight_decay"`
	// Scope says which parameters decay: "first" (default) the weights, not the
	// biases, of layer 1, as in the GCN paper; "weights" all but biases; "all".
	Scope string `json:"weight_decay_scope"`
	// Momentum is SGD's, in [0,1). 0: none. Must be 0 for the others.
	Momentum float64 `json:"momentum,omitempty"`
	// Beta1 and Beta2 are Adam's decay rates, in (0,1); default 0.9 and 0.999.
	Beta1 float64 `json:"beta1,omitempty"`
	Beta2 float64 `json:"beta2,omitempty"`
	// Eps is added to Adam's denominator; default 1e-8.
	Eps float64 `json:"eps,omitempty"`

	// Schedule says how the learning rate moves with the epoch: one of Schedules;
	// "" (default) is "constant".
	Schedule string `json:"lr_schedule,omitempty"`
	// Epochs is the length of the training, over which "cosine" falls to 0. Others
	// do not look at it.
	Epochs int `json:"lr_epochs,omitempty"`
	// Every is the number of epochs between the steps of "step".
	Every int `json:"lr_step,omitempty"`
	// Gamma is the factor of each step of "step", default 0.1, and of each epoch of
	// "exponential", default 0.99.
	Gamma float64 `json:"lr_gamma,omitempty"`
	// Warmup is the number of epochs in which the rate rises, by equal steps, to LR;
	// the schedule begins after them. 0: none.
	Warmup int `json:"warmup,omitempty"`
	// ClipNorm is the largest norm of all gradients together: longer ones are scaled
	// down to it. 0: as they are.
	ClipNorm float64 `json:"clip_norm,omitempty"`
}

// WithDefaults is c with defaults in the place of zero values.
func (c Config) WithDefaults() Config {
	set := func(p *float64, def float64) {
		if *p == 0 {
			*p = def
		}
	}
	if c.Name == "" {
		c.Name = "adam"
	}
	if c.Scope == "" {
		c.Scope = "first"
	}
	set(&c.LR, 0.01)
	if c.Name != "sgd" {
		set(&c.Beta1, 0.9)
		set(&c.Beta2, 0.999)
		set(&c.Eps, 1e-8)
	}
	c.scheduleDefaults()
	return c
}

// Validate reports every problem of c, whose defaults are filled in, at once.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("optimizer: "+format, args...)) }
	switch c.Name {
	case "adam", "adamw", "sgd":
	default:
		bad("unknown name %q: want adam, adamw or sgd", c.Name)
	}
	switch c.Scope {
	case "first", "weights", "all":
	default:
		bad("unknown weight decay scope %q: want first, weights or all", c.Scope)
	}
	if !(c.LR > 0) || math.IsInf(c.LR, 1) {
		bad("learning rate %v: want a number above 0", c.LR)
	}
	if !(c.WeightDecay >= 0) || math.IsInf(c.WeightDecay, 1) {
		bad("weight decay %v: want 0 or more", c.WeightDecay)
	}
	c.checkSchedule(bad)
	if c.Name == "sgd" {
		if !(c.Momentum >= 0 && c.Momentum < 1) {
			bad("momentum %v: want 0 <= momentum < 1", c.Momentum)
		}
		return errors.Join(errs...)
	}
	if c.Momentum != 0 {
		bad("momentum %v is for sgd only: %s has none", c.Momentum, c.Name)
	}
	for _, b := range []struct {
		name  string
		value float64
	}{{"beta1", c.Beta1}, {"beta2", c.Beta2}} {
		// A beta that rounds to 1 in float32 would never forget.
		if !(b.value > 0 && float32(b.value) < 1) {
			bad("%s %v: want 0 < %s < 1", b.name, b.value, b.name)
		}
	}
	if !(c.Eps > 0) || math.IsInf(c.Eps, 1) {
		bad("eps %v: want a number above 0", c.Eps)
	}
	return errors.Join(errs...)
}

// Decay is the weight decay of one parameter.
func (c Config) Decay(p model.ParamSpec) float64 {
	switch {
	case c.Scope == "all",
		c.Scope == "weights" && !p.Bias,
		c.Scope == "first" && !p.Bias && p.Layer == 1:
		return c.WeightDecay
	}
	return 0
}

// Slots names what is kept per parameter, as PyTorch does: "exp_avg" and
// "exp_avg_sq" for Adam, "momentum_buffer" for SGD with momentum.
func (c Config) Slots() []string {
	switch {
	case c.Name != "sgd":
		return []string{"exp_avg", "exp_avg_sq"}
	case c.Momentum != 0:
		return []string{"momentum_buffer"}
	}
	return nil
}
