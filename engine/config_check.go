package engine

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dorylus/engine/model"
	"dorylus/engine/optim"
)

// The values that the settings of that name accept.
var (
	Modes             = []string{"cpu", "gpu", "lambda"}
	Models            = model.Names()
	Aggregators       = []string{"mean", "max"}
	Norms             = []string{"none", "layer", "batch"}
	Activations       = []string{"relu", "leaky-relu", "elu", "tanh", "identity"}
	Optimizers        = []string{"adam", "adamw", "sgd"}
	LRSchedules       = optim.Schedules
	Metrics           = []string{"accuracy", "micro-f1", "macro-f1", "roc-auc"}
	WeightDecayScopes = []string{"first", "weights", "all"}
	Pipelines         = []string{"sync", "async"}
	Precisions        = []string{"fp32", "tf32", "bf16"}
	GPUProducts       = []string{"own", "cublas"}
	LambdaTransports  = []string{"stream", "inline"}
	LambdaFallbacks   = []string{"local", "fail"}
	WirePrecisions    = []string{"fp32", "bf16", "fp16"}
	FeatureChoices    = []string{"row-normalize", "standardize", "identity", "none"}
	Orders            = []string{"auto", "metis", "lpa", "stream", "ldg", "fennel", "degree", "natural", "hash"}
	Devices           = []string{"auto", "ref", "cpu", "cpu/scalar", "cpu/avx2", "cpu/avx512"}
	ProgressStyles    = []string{"auto", "plain", "json", "none"}
)

// checker collects the problems of a Config.
type checker struct{ errs []error }

func (k *checker) bad(flag string, value any, remedy string, args ...any) {
	k.errs = append(k.errs, fmt.Errorf("--%s=%v: %s", flag, value, fmt.Sprintf(remedy, args...)))
}

func (k *checker) oneOf(flag, value string, choices []string) {
	if !slices.Contains(choices, value) {
		k.bad(flag, value, "choose one of %s", strings.Join(choices, ", "))
	}
}

func (k *checker) atLeast(flag string, value, least int, hint string) {
	if value < least {
		k.bad(flag, value, "give %d or more%s", least, hint)
	}
}

func (k *checker) within(flag string, value, lo, hi float64, remedy string) {
	if !(value >= lo && value < hi) {
		k.bad(flag, value, "%s", remedy)
	}
}

// Validate reports every problem of c at once, each with the flag, its value and
// what to do. It looks at nothing outside c.
func (c Config) Validate() error {
	var k checker
	c.checkData(&k)
	c.checkModel(&k)
	c.checkTraining(&k)
	c.checkPipeline(&k)
	c.checkOutput(&k)
	return errors.Join(k.errs...)
}

func (c Config) checkData(k *checker) {
	k.oneOf("mode", c.Mode, Modes)
	if c.Data == "" {
		k.bad("data", `""`, "name cora, a store, a file or a folder")
	}
	if c.Features != "" {
		k.oneOf("features", c.Features, FeatureChoices)
	}
	k.oneOf("order", c.Order, Orders)
	if c.Split != "" && c.SplitFile != "" {
		k.bad("split-file", c.SplitFile, "give either it or --split=%s, not both", c.Split)
	}
	if kind, _, _ := strings.Cut(c.Split, ":"); c.Split != "" {
		if !slices.Contains([]string{"planetoid", "per-class", "random"}, kind) {
			k.bad("split", c.Split, "write planetoid, per-class:20/30 or random:60/20/20")
		}
	}
	k.atLeast("split-index", c.SplitIndex, -1, ", -1 to choose by run")
}

func (c Config) checkModel(k *checker) {
	k.oneOf("model", c.Model, model.Names())
	k.atLeast("layers", c.Layers, 1, "")
	k.atLeast("hidden", c.Hidden, 1, "")
	k.oneOf("activation", c.Activation, Activations)
	k.atLeast("heads", c.Heads, 1, "")
	k.atLeast("out-heads", c.OutHeads, 1, "")
	k.atLeast("hops", c.Hops, 0, "")
	if !(c.Alpha >= 0 && c.Alpha <= 1) {
		k.bad("alpha", c.Alpha, "give a share from 0 to 1")
	}
	k.oneOf("aggregator", c.Aggregator, Aggregators)
	k.oneOf("norm", c.Norm, Norms)
	for _, d := range []struct {
		flag  string
		value float64
	}{{"dropout", c.Dropout}, {"input-dropout", c.InputDropout}, {"attention-dropout", c.AttentionDropout}} {
		k.within(d.flag, d.value, 0, 1, "give a probability from 0 to below 1")
	}
}

func (c Config) checkTraining(k *checker) {
	k.atLeast("epochs", c.Epochs, 1, "")
	k.oneOf("optimizer", c.Optimizer, Optimizers)
	if !(c.LR > 0) || math.IsInf(c.LR, 0) {
		k.bad("lr", c.LR, "give a learning rate above 0, for example 0.01")
	}
	k.within("momentum", c.Momentum, 0, 1, "give a value from 0 to below 1")
	if c.Momentum != 0 && c.Optimizer != "sgd" {
		k.bad("momentum", c.Momentum, "only --optimizer=sgd has momentum; leave it out or switch from %s", c.Optimizer)
	}
	k.within("weight-decay", c.WeightDecay, 0, math.Inf(1), "give 0 or more, for example 5e-4")
	k.oneOf("weight-decay-scope", c.WeightDecayScope, WeightDecayScopes)
	c.checkSchedule(k)
	k.atLeast("runs", c.Runs, 1, "")
	if c.Runs > 1 && c.Resume != "" {
		k.bad("runs", c.Runs, "--resume goes on with one run; name the folder of that run and leave --runs out")
	}
	if c.Metric != "" {
		k.oneOf("metric", c.Metric, Metrics)
	}
	k.atLeast("eval-every", c.EvalEvery, 1, "")
	k.atLeast("patience", c.Patience, 0, ", 0 to never stop early")
	if t := c.TargetAccuracy; t > 1 && t <= 100 {
		k.bad("target-accuracy", t, "accuracies are fractions; did you mean %g?", t/100)
	} else if !(t >= 0 && t <= 1) {
		k.bad("target-accuracy", t, "give a fraction from 0 to 1, 0 to never stop early")
	}
	k.within("max-cost", c.MaxCost, 0, math.Inf(1), "give dollars, for example 2.50, or 0 for no limit")
	if c.MaxCost > 0 && c.Instance == "none" {
		k.bad("max-cost", c.MaxCost, "a limit needs prices; leave --instance=none out")
	}
}

func (c Config) checkSchedule(k *checker) {
	k.oneOf("lr-schedule", c.LRSchedule, LRSchedules)
	k.atLeast("lr-step", c.LRStep, 0, "")
	switch {
	case c.LRSchedule == "step" && c.LRStep == 0:
		k.bad("lr-schedule", c.LRSchedule, "add --lr-step=N, the number of epochs between steps")
	case c.LRSchedule != "step" && c.LRStep > 0:
		k.bad("lr-step", c.LRStep, "only --lr-schedule=step has steps; leave it out or switch from %s", c.LRSchedule)
	}
	k.within("lr-gamma", c.LRGamma, 0, math.Inf(1), "give a factor above 0, for example 0.5")
	if c.LRGamma > 0 && c.LRSchedule != "step" && c.LRSchedule != "exponential" {
		k.bad("lr-gamma", c.LRGamma, "only --lr-schedule=step and exponential have a factor; leave it out or switch from %s", c.LRSchedule)
	}
	k.atLeast("warmup", c.Warmup, 0, "")
	if c.Warmup > 0 && c.Epochs > 0 && c.Warmup >= c.Epochs {
		k.bad("warmup", c.Warmup, "give fewer epochs than --epochs=%d", c.Epochs)
	}
	k.within("clip-norm", c.ClipNorm, 0, math.Inf(1), "give a norm above 0, for example 1, or 0 for no clipping")
}

func (c Config) checkPipeline(k *checker) {
	k.oneOf("pipeline", c.Pipeline, Pipelines)
	k.atLeast("staleness", c.Staleness, 0, "")
	if c.Staleness > 0 && c.Pipeline == "sync" {
		k.bad("staleness", c.Staleness, "add --pipeline=async; a synchronous pipeline reads no stale rows")
	}
	k.within("async-wait", c.AsyncWait, 0, math.Nextafter(1, 2), "give a share of the time: 0 for never, 0.5, at most 1")
	k.atLeast("intervals", c.Intervals, 0, ", 0 to choose automatically")
	k.atLeast("threads", c.Threads, 0, ", 0 for one per core")
	k.oneOf("device", c.Device, Devices)
	c.checkGPU(k)
	c.checkLambda(k)
}

func (c Config) checkLambda(k *checker) {
	if n, err := strconv.Atoi(c.Lambdas); c.Lambdas != "auto" && (err != nil || n < 1) {
		k.bad("lambdas", c.Lambdas, "give a number of workers from 1 on, or auto")
	}
	if c.LambdaMemory < 128 || c.LambdaMemory > 10240 {
		k.bad("lambda-memory", c.LambdaMemory, "give 128 to 10240 MB; 1769 is one processor")
	}
	local := c.LambdaEndpoint == "local"
	if u, err := url.Parse(c.LambdaEndpoint); !local && c.LambdaEndpoint != "aws" && (err != nil || u.Host == "") {
		k.bad("lambda-endpoint", c.LambdaEndpoint, "give local, aws, or a URL such as http://127.0.0.1:9001")
	}
	k.oneOf("lambda-transport", c.LambdaTransport, LambdaTransports)
	k.oneOf("lambda-fallback", c.LambdaFallback, LambdaFallbacks)
	if c.LambdaEndpoint == "aws" && c.Mode == "lambda" && c.LambdaAddress == "" && c.LambdaTransport == "stream" {
		k.bad("lambda-address", `""`, "give host:port under which workers in AWS reach this server")
	}
	if _, _, err := net.SplitHostPort(c.LambdaAddress); c.LambdaAddress != "" && err != nil {
		k.bad("lambda-address", c.LambdaAddress, "give host:port, for example 10.0.0.5:7070")
	}
	k.oneOf("wire-precision", c.WirePrecision, WirePrecisions)
	if c.Chaos != "" && !local {
		k.bad("chaos", c.Chaos, "only the local service injects faults: leave out --lambda-endpoint=%s", c.LambdaEndpoint)
	}
}

func (c Config) checkOutput(k *checker) {
	k.atLeast("checkpoint-every", c.CheckpointEvery, 0, ", 0 for only at the end")
	if c.CheckpointEvery > 0 && c.OutDir == "" && c.Resume == "" {
		k.bad("checkpoint-every", c.CheckpointEvery, "add --out=RUN, the folder that gets the checkpoints")
	}
	if c.TaskEvents && c.OutDir == "" && c.Resume == "" {
		k.bad("task-events", c.TaskEvents, "add --out=RUN, the folder that gets the events")
	}
	k.oneOf("progress", c.Progress, ProgressStyles)
}
