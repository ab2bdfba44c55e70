// Package ckpt writes and reads checkpoints: all that a run needs to go on as if it
// had not been interrupted. FORMAT.md describes the files.
package ckpt

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"dorylus/engine/optim"
)

// Named is a tensor as it is exported: PyTorch's name and orientation.
type Named struct {
	Name  string
	Shape []int // of one or two dimensions; a bias has one
	Data  []float32
}

// Identity is what a checkpoint and the run that goes on from it must agree on.
type Identity struct {
	// Model is the model in few words, for people: "gcn 2x16".
	Model string `json:"model"`
	// Config is every setting that shapes the model or its training, a JSON object.
	Config json.RawMessage `json:"config"`
	// Dataset is the name of the data, Fingerprint a hash of its contents.
	Dataset     string `json:"dataset"`
	Fingerprint string `json:"dataset_fingerprint"`
	Seed        uint64 `json:"seed"`
}

// Best is the best evaluation so far.
type Best struct {
	Epoch int     `json:"epoch"` // 0-based: the weights after this epoch
	Train float64 `json:"train"`
	Val   float64 `json:"val"`
	Test  float64 `json:"test"`
}

// Checkpoint is the state of a run after Epoch epochs.
type Checkpoint struct {
	Epoch int // epochs done, and the version of the weights
	Identity
	Optim     optim.Config
	OptimStep int
	Weights   []Named
	// Moments are the optimiser's, "conv1.lin.weight.exp_avg" and so on.
	Moments []Named
	// Best and BestWeights are nil if nothing was evaluated yet.
	Best        *Best
	BestWeights []Named
	// Extra is what else the trainer wants to find again.
	Extra map[string]json.RawMessage
}

// Matches says, in one line, why a run cannot go on from c; nil if it can.
func (c *Checkpoint) Matches(run Identity) error {
	const remedy = "give the settings of the first run, or start anew with another --out"
	if c.Model != run.Model {
		return fmt.Errorf("checkpoint is of %s, this run is %s: %s", c.Model, run.Model, remedy)
	}
	if c.Fingerprint != run.Fingerprint {
		if c.Dataset != run.Dataset {
			return fmt.Errorf("checkpoint is of data %s, this run has %s: give --data=%s, or start anew with another --out", c.Dataset, run.Dataset, c.Dataset)
		}
		return fmt.Errorf("checkpoint is of other contents of data %s (fingerprint %.12s, here %.12s): go on with the same store, or start anew with another --out",
			c.Dataset, c.Fingerprint, run.Fingerprint)
	}
	if c.Seed != run.Seed {
		return fmt.Errorf("checkpoint is of seed %d, this run has %d: %s", c.Seed, run.Seed, remedy)
	}
	diff, err := differences(c.Config, run.Config)
	if err != nil {
		return err
	}
	if len(diff) > 0 {
		return fmt.Errorf("checkpoint has %s: %s", strings.Join(diff, "; "), remedy)
	}
	return nil
}

// differences lists the keys of two JSON objects whose values differ.
func differences(then, now json.RawMessage) ([]string, error) {
	a, b := map[string]any{}, map[string]any{}
	for _, x := range []struct {
		raw  json.RawMessage
		into *map[string]any
		who  string
	}{{then, &a, "the checkpoint's"}, {now, &b, "this run's"}} {
		if len(x.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(x.raw, x.into); err != nil {
			return nil, fmt.Errorf("read %s settings: %w", x.who, err)
		}
	}
	var diff []string
	for key, old := range a {
		if now, ok := b[key]; !ok {
			diff = append(diff, fmt.Sprintf("%s %s, this run has none", key, text(old)))
		} else if !reflect.DeepEqual(old, now) {
			diff = append(diff, fmt.Sprintf("%s %s, this run has %s", key, text(old), text(now)))
		}
	}
	for key, now := range b {
		if _, ok := a[key]; !ok {
			diff = append(diff, fmt.Sprintf("no %s, this run has %s", key, text(now)))
		}
	}
	sort.Strings(diff)
	return diff, nil
}

// text is a value as JSON.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
