package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"dorylus/engine"
)

// otherValues has a value that differs from the default for every setting.
var otherValues = map[string]string{
	"mode": "gpu", "data": "graph.csv", "features": "identity", "order": "hash", "split": "planetoid", "split-file": "s.json",
	"split-index": "3", "model": "mlp", "layers": "5", "hidden": "99", "bias": "false", "activation": "tanh", "dropout": "0.25",
	"heads": "3", "out-heads": "2", "aggregator": "max", "hops": "5", "alpha": "0.5", "residual": "true", "jumping-knowledge": "true", "norm": "layer", "attention-dropout": "0.1",
	"input-dropout": "0", "epochs": "7", "optimizer": "sgd", "lr": "0.125", "momentum": "0.9", "weight-decay": "0.001",
	"lr-schedule": "cosine", "lr-step": "30", "lr-gamma": "0.5", "warmup": "5", "clip-norm": "1.5", "class-weights": "balanced", "metric": "roc-auc",
	"weight-decay-scope": "all", "seed": "42", "runs": "3", "eval-every": "2", "patience": "11", "target-accuracy": "0.75", "max-cost": "2.5", "spot-notice": "true", "instance": "c7i.2xlarge",
	"cache-gather": "false", "prune-rows": "false", "pipeline": "async", "staleness": "2", "async-wait": "0.25", "intervals": "16", "threads": "1", "precision": "bf16", "gpu": "0,2", "gpu-memory": "12GiB", "gpu-products": "cublas", "device": "cpu/scalar",
	"lambdas": "5", "lambda-memory": "512", "lambda-endpoint": "http://127.0.0.1:9001", "lambda-function": "worker", "lambda-address": "10.0.0.5:7070",
	"lambda-transport": "inline", "lambda-fallback": "fail", "wire-precision": "bf16", "chaos": "seed=3,crash=0.5",
	"out": "RUN", "resume": "OLD", "checkpoint-every": "4", "task-events": "true", "progress": "none", "json": "true", "dry-run": "true",
}

// printed is one line of config print.
func printed(t *testing.T, out, name string) (value, origin string) {
	t.Helper()
	for _, line := range strings.Split(out, "\n") {
		if rest, ok := strings.CutPrefix(line, name+": "); ok {
			value, origin, _ = strings.Cut(rest, "# ")
			value = strings.TrimSpace(value)
			if text, err := strconv.Unquote(value); err == nil {
				value = text
			}
			return value, origin
		}
	}
	t.Fatalf("%s is not in the output of config print:\n%s", name, out)
	return "", ""
}

// Every flag, environment variable and line of a config file reaches the settings
// that training uses.
func TestEverySettingTakesEffect(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "OLD/config.yaml", "# nothing\n")
	c := engine.DefaultConfig("gcn")
	for _, s := range c.Settings() {
		want, ok := otherValues[s.Name]
		if !ok || want == s.Text() {
			t.Errorf("%s: the test needs a value that is not the default", s.Name)
			continue
		}
		write(t, dir, "one.yaml", s.Name+": "+want+"\n")
		for _, way := range []struct {
			origin string
			env    []string
			args   []string
		}{
			{"flag", nil, []string{"--" + s.Name + "=" + want}},
			{"env " + envName(s.Name), []string{envName(s.Name) + "=" + want}, nil},
			{"file one.yaml", nil, []string{"--config=one.yaml"}},
		} {
			// a setting that needs another one is printed, and then complained about
			r := call(t, dir, way.env, append([]string{"config", "print"}, way.args...)...)
			if s.Name == "json" && way.origin == "flag" {
				var all struct{ Config, Origin map[string]any }
				if err := json.Unmarshal([]byte(r.out), &all); err != nil || all.Config["json"] != true || all.Origin["json"] != "flag" {
					t.Errorf("config print --json: %v\n%s", err, r.out)
				}
				continue
			}
			if value, origin := printed(t, r.out, s.Name); value != want || origin != way.origin {
				t.Errorf("%s: got %q from %q, want %q from %q", s.Name, value, origin, want, way.origin)
			}
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	dir := t.TempDir()
	write(t, dir,
		"RUN/config.yaml", "lr: 1\nhidden: 1\nepochs: 1\nlayers: 1\nout: \"RUN\"\njson: true\n",
		"f.yaml", "lr: 2\nhidden: 2\nepochs: 2\n")
	r := call(t, dir, []string{"DORYLUS_LR=3", "DORYLUS_HIDDEN=3", "DORYLUS_CONFIG=f.yaml", "DORYLUS_ISA=scalar", "DORYLUS_SEED="},
		"config", "print", "--lr=4", "--resume=RUN")
	for name, want := range map[string][2]string{
		"lr": {"4", "flag"}, "hidden": {"3", "env DORYLUS_HIDDEN"}, "epochs": {"2", "file f.yaml"}, "layers": {"1", "run RUN"},
		"dropout": {"0.5", "default"}, "seed": {"0", "default"},
		"out": {"", "default"}, "json": {"false", "default"}, // belong to one command line
	} {
		if value, origin := printed(t, r.out, name); value != want[0] || origin != want[1] {
			t.Errorf("%s: %q from %q, want %q from %q", name, value, origin, want[0], want[1])
		}
	}
}

func TestPrintedConfigIsAConfigFile(t *testing.T) {
	dir := t.TempDir()
	args := []string{"config", "print", "--lr=0.3", "--data=a: #b", "--bias=false"}
	first := mustRun(t, dir, args...)
	write(t, dir, "c.yaml", first)
	second := mustRun(t, dir, "config", "print", "--config=c.yaml")
	c := engine.DefaultConfig("gcn")
	for _, s := range c.Settings() {
		a, _ := printed(t, first, s.Name)
		b, _ := printed(t, second, s.Name)
		if a != b {
			t.Errorf("%s: %q became %q", s.Name, a, b)
		}
	}
}

func TestConfigPrintValidates(t *testing.T) {
	r := call(t, t.TempDir(), nil, "config", "print", "--lr=-1")
	if value, _ := printed(t, r.out, "lr"); value != "-1" || r.code != exitUsage || !strings.Contains(r.err, "--lr=-1") {
		t.Errorf("exit %d, lr %s\n%s", r.code, value, r.err)
	}
}
