package engine

import (
	"math"
	"strings"
	"testing"
)

func TestDefaultConfigIsValid(t *testing.T) {
	for _, m := range Models {
		if err := DefaultConfig(m).Validate(); err != nil {
			t.Errorf("defaults of %s: %v", m, err)
		}
	}
	c := DefaultConfig("gcn")
	if c.Layers != 2 || c.Hidden != 16 || c.Dropout != 0.5 || c.InputDropout != 0.5 || c.LR != 0.01 ||
		c.WeightDecay != 5e-4 || c.WeightDecayScope != "first" || c.Epochs != 200 || c.Optimizer != "adam" ||
		c.Activation != "relu" || !c.Bias || c.EvalEvery != 1 {
		t.Errorf("defaults are not the GCN paper's:\n%v", c)
	}
}

func TestWithDefaultsKeepsMeaningfulZeros(t *testing.T) {
	c := Config{Model: "mlp"}.WithDefaults()
	if c.Dropout != 0 || c.InputDropout != 0 || c.WeightDecay != 0 || c.Bias || c.SplitIndex != 0 || c.Seed != 0 {
		t.Errorf("a zero that is a setting was replaced:\n%v", c)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("defaults filled in by hand: %v", err)
	}
}

func TestValidateNamesFlagValueAndRemedy(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Mode = "tpu" }, "--mode=tpu: choose one of cpu, gpu, lambda"},
		{func(c *Config) { c.Data = "" }, `--data="": name cora`},
		{func(c *Config) { c.Features = "l2" }, "--features=l2: choose one of row-normalize"},
		{func(c *Config) { c.Order = "random" }, "--order=random: choose one of auto, metis"},
		{func(c *Config) { c.Split, c.SplitFile = "planetoid", "f" }, "--split-file=f: give either it or --split=planetoid"},
		{func(c *Config) { c.Split = "80/20" }, "--split=80/20: write planetoid, per-class:20/30"},
		{func(c *Config) { c.SplitIndex = -2 }, "--split-index=-2: give -1 or more"},
		{func(c *Config) { c.Model = "gpt" }, "--model=gpt: choose one of " + strings.Join(Models, ", ")},
		{func(c *Config) { c.Layers = -1 }, "--layers=-1: give 1 or more"},
		{func(c *Config) { c.Hidden = -5 }, "--hidden=-5: give 1 or more"},
		{func(c *Config) { c.Activation = "gelu" }, "--activation=gelu: choose one of relu"},
		{func(c *Config) { c.Dropout = 1 }, "--dropout=1: give a probability"},
		{func(c *Config) { c.InputDropout = math.NaN() }, "--input-dropout=NaN: give a probability"},
		{func(c *Config) { c.Epochs = -3 }, "--epochs=-3: give 1 or more"},
		{func(c *Config) { c.Optimizer = "lion" }, "--optimizer=lion: choose one of adam, adamw, sgd"},
		{func(c *Config) { c.LR = -1 }, "--lr=-1: give a learning rate above 0"},
		{func(c *Config) { c.Momentum = 0.9 }, "--momentum=0.9: only --optimizer=sgd"},
		{func(c *Config) { c.WeightDecay = -1 }, "--weight-decay=-1: give 0 or more"},
		{func(c *Config) { c.WeightDecayScope = "none" }, "--weight-decay-scope=none: choose one of first"},
		{func(c *Config) { c.LRSchedule = "plateau" }, "--lr-schedule=plateau: choose one of constant, cosine, step, exponential"},
		{func(c *Config) { c.LRSchedule = "step" }, "--lr-schedule=step: add --lr-step=N"},
		{func(c *Config) { c.LRStep = 3 }, "--lr-step=3: only --lr-schedule=step has steps; leave it out or switch from constant"},
		{func(c *Config) { c.LRStep = -1 }, "--lr-step=-1: give 0 or more"},
		{func(c *Config) { c.LRSchedule, c.LRGamma = "cosine", 0.5 }, "--lr-gamma=0.5: only --lr-schedule=step and exponential"},
		{func(c *Config) { c.LRSchedule, c.LRGamma = "exponential", -1 }, "--lr-gamma=-1: give a factor above 0"},
		{func(c *Config) { c.Warmup = -1 }, "--warmup=-1: give 0 or more"},
		{func(c *Config) { c.Warmup = 200 }, "--warmup=200: give fewer epochs than --epochs=200"},
		{func(c *Config) { c.ClipNorm = -1 }, "--clip-norm=-1: give a norm above 0"},
		{func(c *Config) { c.ClipNorm = math.Inf(1) }, "--clip-norm=+Inf: give a norm above 0"},
		{func(c *Config) { c.Metric = "auc" }, "--metric=auc: choose one of accuracy, micro-f1, macro-f1, roc-auc"},
		{func(c *Config) { c.Runs = -1 }, "--runs=-1: give 1 or more"},
		{func(c *Config) { c.Runs, c.Resume = 2, "RUN" }, "--runs=2: --resume goes on with one run"},
		{func(c *Config) { c.EvalEvery = -1 }, "--eval-every=-1: give 1 or more"},
		{func(c *Config) { c.Patience = -1 }, "--patience=-1: give 0 or more"},
		{func(c *Config) { c.TargetAccuracy = 81.5 }, "--target-accuracy=81.5: accuracies are fractions; did you mean 0.815?"},
		{func(c *Config) { c.TargetAccuracy = -0.1 }, "--target-accuracy=-0.1: give a fraction"},
		{func(c *Config) { c.Pipeline = "pipe" }, "--pipeline=pipe: choose one of sync, async"},
		{func(c *Config) { c.Staleness = 1 }, "--staleness=1: add --pipeline=async"},
		{func(c *Config) { c.Intervals = -1 }, "--intervals=-1: give 0 or more"},
		{func(c *Config) { c.Threads = -1 }, "--threads=-1: give 0 or more"},
		{func(c *Config) { c.Precision = "fp8" }, "--precision=fp8: choose one of fp32, tf32, bf16"},
		{func(c *Config) { c.Precision = "bf16" }, "--precision=bf16: --mode=cpu computes in fp32 only"},
		{func(c *Config) { c.Mode, c.Precision = "lambda", "tf32" }, "--precision=tf32: --mode=lambda computes in fp32 only"},
		{func(c *Config) { c.GPU = "0,1" }, "--gpu=0,1: --mode=cpu uses no GPU"},
		{func(c *Config) { c.Mode, c.GPUProducts = "gpu", "mkl" }, "--gpu-products=mkl: choose one of own, cublas"},
		{func(c *Config) { c.GPUProducts = "cublas" }, "--gpu-products=cublas: --mode=cpu uses no GPU"},
		{func(c *Config) { c.GPUMemory = "1GiB" }, "--gpu-memory=1GiB: --mode=cpu uses no GPU"},
		{func(c *Config) { c.Mode, c.GPU = "gpu", "0,x" }, `--gpu=0,x: "x" is no number of a GPU`},
		{func(c *Config) { c.Mode, c.GPU = "gpu", "1,1" }, "--gpu=1,1: GPU 1 is there twice"},
		{func(c *Config) { c.Mode, c.GPUMemory = "gpu", "120%" }, `--gpu-memory=120%: "120%" is no share`},
		{func(c *Config) { c.Mode, c.GPUMemory = "gpu", "0" }, `--gpu-memory=0: "0" is no amount of memory`},
		{func(c *Config) { c.Mode, c.Device = "gpu", "cpu/avx2" }, "--device=cpu/avx2: it chooses kernels of the processor"},
		{func(c *Config) { c.Device = "cuda" }, "--device=cuda: choose one of auto"},
		{func(c *Config) { c.CheckpointEvery = 5 }, "--checkpoint-every=5: add --out=RUN"},
		{func(c *Config) { c.TaskEvents = true }, "--task-events=true: add --out=RUN"},
		{func(c *Config) { c.Progress = "bar" }, "--progress=bar: choose one of auto"},
	} {
		c := DefaultConfig("gcn")
		test.change(&c)
		err := c.Validate()
		if err == nil {
			t.Errorf("accepted what should give %q", test.want)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("got  %q\nwant one line that starts with %q", got, test.want)
		}
	}
}

func TestSchedulesAreAccepted(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.LRSchedule, c.Warmup, c.ClipNorm = "cosine", 199, 1 },
		func(c *Config) { c.LRSchedule, c.LRStep = "step", 50 },
		func(c *Config) { c.LRSchedule, c.LRStep, c.LRGamma = "step", 500, 0.5 },
		func(c *Config) { c.LRSchedule = "exponential" },
		func(c *Config) { c.Metric, c.ClassWeights = "roc-auc", "balanced" },
	} {
		c := DefaultConfig("gcn")
		change(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestValidateReportsAllProblems(t *testing.T) {
	c := DefaultConfig("gcn")
	c.LR, c.Epochs, c.Pipeline = -1, -1, "x"
	got := c.Validate().Error()
	for _, want := range []string{"--lr=-1", "--epochs=-1", "--pipeline=x"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestStringListsEverySetting(t *testing.T) {
	c := DefaultConfig("gcn")
	got := c.String()
	for _, s := range c.Settings() {
		if s.Name == "" {
			t.Fatal("a field of Config has no flag tag")
		}
		if !strings.Contains("\n"+got, "\n"+s.Name+": ") {
			t.Errorf("%s is missing in\n%s", s.Name, got)
		}
	}
	for _, want := range []string{"weight-decay: 0.0005\n", "data: \"cora\"\n", "bias: true\n", "split-index: -1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestSettingsReadWhatTheyWrite(t *testing.T) {
	from, to := DefaultConfig("mlp"), Config{}
	from.Seed, from.LR, from.SplitFile = math.MaxUint64, 1.0/3, "a: #b"
	for i, s := range from.Settings() {
		if err := to.Settings()[i].Set(s.Text()); err != nil {
			t.Error(err)
		}
	}
	if from != to {
		t.Errorf("got\n%v\nwant\n%v", to, from)
	}
}

func TestSettingsRefuseNonsense(t *testing.T) {
	want := map[string]string{"count": "whole number", "number": "give a number", "true|false": "give true or false"}
	c := DefaultConfig("gcn")
	for _, s := range c.Settings() {
		if s.Type() == "text" {
			continue
		}
		err := s.Set("x")
		if err == nil || !strings.HasPrefix(err.Error(), "--"+s.Name+"=x: ") || !strings.Contains(err.Error(), want[s.Type()]) {
			t.Errorf("%s: got %v, want ... %s", s.Name, err, want[s.Type()])
		}
	}
	for _, text := range []string{"-1", "1.5", "18446744073709551616"} {
		if err := (Setting{Name: "seed", Ptr: new(uint64)}).Set(text); err == nil {
			t.Errorf("seed %s was accepted", text)
		}
	}
}
