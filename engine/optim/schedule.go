package optim

import (
	"fmt"
	"math"
)

// Schedules are the values of Config.Schedule. Each is PyTorch's scheduler of that
// name, advanced once an epoch; with e the epochs since the end of the warm-up:
//
//	constant     LR
//	cosine       LR·(1+cos(π·e/E))/2, E the epochs after the warm-up (CosineAnnealingLR to 0)
//	step         LR·Gamma^⌊e/Every⌋                                   (StepLR)
//	exponential  LR·Gamma^e                                           (ExponentialLR)
//
// The warm-up is LR·(epoch+1)/Warmup in the first Warmup epochs (LinearLR from
// LR/Warmup on); its last epoch has the full rate already.
var Schedules = []string{"constant", "cosine", "step", "exponential"}

// Rate is the learning rate of an epoch, from 0 on. It depends on the epoch's
// number alone, so a resumed run goes on with the rates of one that never stopped.
// c has its defaults filled in.
func (c Config) Rate(epoch int) float64 {
	if epoch < c.Warmup {
		return c.LR * float64(epoch+1) / float64(c.Warmup)
	}
	e := epoch - c.Warmup
	switch c.Schedule {
	case "cosine":
		return c.LR * (1 + math.Cos(math.Pi*float64(e)/float64(c.Epochs-c.Warmup))) / 2
	case "step":
		return c.LR * math.Pow(c.Gamma, float64(e/c.Every))
	case "exponential":
		return c.LR * math.Pow(c.Gamma, float64(e))
	}
	return c.LR
}

// scheduleDefaults fills in what the schedule uses and clears what it does not, so
// that settings without effect make no two configurations differ.
func (c *Config) scheduleDefaults() {
	if c.Schedule == "constant" {
		c.Schedule = ""
	}
	if c.Schedule != "cosine" {
		c.Epochs = 0
	}
	if c.Schedule == "step" && c.Gamma == 0 {
		c.Gamma = 0.1
	}
	if c.Schedule == "exponential" && c.Gamma == 0 {
		c.Gamma = 0.99
	}
}

// checkSchedule reports the problems of the schedule and of clipping to bad.
func (c Config) checkSchedule(bad func(format string, args ...any)) {
	switch c.Schedule {
	case "":
	case "cosine":
		if c.Epochs <= c.Warmup {
			bad("a cosine schedule over %d epochs with a warm-up of %d: want more epochs than that", c.Epochs, c.Warmup)
		}
	case "step", "exponential":
		// A rate that grows is a search for the largest one that works.
		if !(c.Gamma > 0) || math.IsInf(c.Gamma, 1) {
			bad("schedule %s with gamma %v: want a number above 0", c.Schedule, c.Gamma)
		}
	default:
		bad("unknown schedule %q: want constant, cosine, step or exponential", c.Schedule)
	}
	if c.Schedule == "step" && c.Every < 1 {
		bad("schedule step every %d epochs: want 1 or more", c.Every)
	}
	for _, x := range []struct {
		name string
		used bool
	}{
		{fmt.Sprintf("gamma %v", c.Gamma), c.Gamma == 0 || c.Schedule == "step" || c.Schedule == "exponential"},
		{fmt.Sprintf("a step of %d epochs", c.Every), c.Every == 0 || c.Schedule == "step"},
	} {
		if !x.used {
			bad("%s is not for schedule %q", x.name, c.Schedule)
		}
	}
	if c.Warmup < 0 {
		bad("warm-up of %d epochs: want 0 or more", c.Warmup)
	}
	if !(c.ClipNorm >= 0) || math.IsInf(c.ClipNorm, 1) {
		bad("gradient norm %v to clip at: want a number above 0, or 0 for no clipping", c.ClipNorm)
	}
}
