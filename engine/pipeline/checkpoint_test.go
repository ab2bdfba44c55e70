package pipeline

import (
	"path/filepath"
	"strings"
	"testing"

	"dorylus/engine/ckpt"
)

// A run that goes on from files equals one that was never interrupted.
func TestResumeFromDisk(t *testing.T) {
	for _, optimizer := range []string{"adam", "adamw", "sgd"} {
		set := func(epochs int) func(*Options) {
			return func(o *Options) {
				o.Config.Epochs, o.Config.Optimizer, o.Seed = epochs, optimizer, 3
				if optimizer == "sgd" {
					o.Config.Momentum, o.Config.LR = 0.9, 0.1
				}
			}
		}
		straight := mustTrain(t, options(t, set(8)))
		dir := filepath.Join(t.TempDir(), "ckpt")
		o := options(t, set(5))
		id, err := Identify(&o.Config, o.Store, o.Split, o.Seed)
		check(t, err)
		o.Save = SaveTo(dir, id, o.Listener)
		mustTrain(t, o)
		path, err := ckpt.Latest(dir)
		check(t, err)
		c, err := ckpt.Load(path)
		check(t, err)
		o = options(t, set(8))
		again, err := Identify(&o.Config, o.Store, o.Split, o.Seed)
		check(t, err)
		check(t, c.Matches(again))
		from, err := Restore(c)
		check(t, err)
		o.From = from
		if got := mustTrain(t, o); got.WeightsSHA256 != straight.WeightsSHA256 || got.PredictionsSHA256 != straight.PredictionsSHA256 {
			t.Errorf("%s: resumed from disk: weights %.12s, predictions %.12s; straight %.12s, %.12s", optimizer,
				got.WeightsSHA256, got.PredictionsSHA256, straight.WeightsSHA256, straight.PredictionsSHA256)
		}
	}
}

func TestCheckpointOfAnotherRunIsRefused(t *testing.T) {
	base := options(t)
	id, err := Identify(&base.Config, base.Store, base.Split, 0)
	check(t, err)
	c := &ckpt.Checkpoint{Identity: id}
	for want, set := range map[string]func(*Options){
		"gcn 2x64":  func(o *Options) { o.Config.Hidden = 64 },
		"mlp 2x16":  func(o *Options) { o.Config.Model = "mlp" },
		"optimizer": func(o *Options) { o.Config.LR = 0.5 },
		"seed 0":    func(o *Options) { o.Seed = 1 },
		"contents":  func(o *Options) { s := *o.Store; s.Labels = make([]int32, len(s.Labels)); o.Store = &s },
		"train":     func(o *Options) { o.Split.Train = o.Split.Train[1:] },
	} {
		o := options(t, set)
		other, err := Identify(&o.Config, o.Store, o.Split, o.Seed)
		check(t, err)
		if err := c.Matches(other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
