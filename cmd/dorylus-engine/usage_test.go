package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"dorylus/engine"
	"dorylus/engine/order"
)

func TestUsageErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir,
		"typo.yaml", "learning_rate: 0.1\n",
		"near.yaml", "epochs: 3\nhiden: 5\n",
		"list.yaml", "- epochs\n",
		"nested.yaml", "lr: {a: 1}\n",
		"twice.yaml", "lr: 1\nlr: 2\n",
		"bad.yaml", "lr: fast\n",
		"broken.yaml", "lr: [\n",
		"graph.csv", "a,b\n")
	for _, test := range []struct {
		args string
		env  string
		want []string
	}{
		{"--dataset=cora", "", []string{"unknown flag --dataset; did you mean --data?"}},
		{"train --learning-rate=1", "", []string{"unknown flag --learning-rate; did you mean --lr?"}},
		{"--epoch=3", "", []string{"did you mean --epochs?"}},
		{"--wieght-decay=0", "", []string{"did you mean --weight-decay?"}},
		{"-epochs=3", "", []string{"unknown flag -epochs; write it with two dashes: --epochs"}},
		{"-x", "", []string{"unknown flag -x"}},
		{"--no-bias", "", []string{"write --bias=false"}},
		{"--bias false", "", []string{`"false" stands alone: write --flag=false`}},
		{"--frobnicate", "", []string{"unknown flag --frobnicate; see dorylus-engine --help"}},
		{"--servers=5", "", []string{"unknown flag --servers"}},
		{"--lr", "", []string{"--lr needs a value"}},
		{"--lr=fast", "", []string{"--lr=fast: give a number"}},
		{"--epochs=1.5", "", []string{"--epochs=1.5: give a whole number"}},
		{"--seed=-1", "", []string{"--seed=-1: give a whole number from 0 on"}},
		{"--json=maybe", "", []string{"--json=maybe: give true or false"}},
		{"--lr-schedule=linear", "", []string{"--lr-schedule=linear: choose one of constant, cosine, step, exponential"}},
		{"--lr-schedule=step", "", []string{"add --lr-step=N"}},
		{"--lr-scheduel=step", "", []string{"did you mean --lr-schedule?"}},
		{"--warmup=300", "", []string{"--warmup=300: give fewer epochs than --epochs=200"}},
		{"--metric=f1", "", []string{"--metric=f1: choose one of accuracy, micro-f1"}},
		{"--epochs=0", "", []string{"--epochs=0: give 1 or more"}},
		{"--lr=0", "", []string{"--lr=0: give a learning rate above 0"}},
		{"--mode=tpu", "", []string{"--mode=tpu: choose one of cpu, gpu, lambda"}},
		{"--staleness=1", "", []string{"add --pipeline=async"}},
		{"--target-accuracy=80", "", []string{"did you mean 0.8?"}},
		{"--split=80/20", "", []string{"--split=80/20", "random:60/20/20"}},
		{"--checkpoint-every=1", "", []string{"--checkpoint-every=1", "--out=RUN"}},
		{"--split-index=9", "", []string{"--split-index=9: cora has 1 split"}},
		{"trian", "", []string{`unknown command "trian"; did you mean "train"?`}},
		{"graph.csv", "", []string{`unknown command "graph.csv"`, "--data=graph.csv"}},
		{"zzzzzz", "", []string{`unknown command "zzzzzz"; commands are `, "train"}},
		{"prepare", "", []string{"prepare: name a source"}},
		{"prepare cora", "", []string{"prepare: name the folder of the store: -o DIR"}},
		{"prepare a b", "", []string{`prepare: "b" is one word too many`}},
		{"prepare cora -o s --ordr=metis", "", []string{"unknown flag --ordr; did you mean --order?"}},
		{"prepare cora -o s --order=best", "", []string{`unknown order "best"`}},
		{"prepare cora -o s --vertices=many", "", []string{"--vertices=many: give a whole number"}},
		{"check", "", []string{"check: name a source"}},
		{"report", "", []string{"report: name the folder of a run"}},
		{"predict", "", []string{"predict: name the folder of a trained model: --run=RUN"}},
		{"predict --run=R", "", []string{"-o FILE.npy, .csv or .parquet"}},
		{"predict --run=R -o x.txt", "", []string{"-o x.txt: write a .npy, .csv or .parquet file"}},
		{"predict --run=R --embeddings=x.txt", "", []string{"--embeddings=x.txt: write a .npy, .csv or .parquet file"}},
		{"predict --run=R --embeddings=x.npy -o ./x.npy", "", []string{"--embeddings=x.npy: that is the file of -o"}},
		{"predict --run=R --embeddings=x.npy --scores", "", []string{"--scores: name the file to write them to"}},
		{"predict --run=R -o x.csv --weights=first", "", []string{"--weights=first: choose one of best, final"}},
		{"config prnt", "", []string{`unknown command "prnt"; did you mean "print"?`}},
		{"version now", "", []string{"version takes no argument"}},
		{"--config=none.yaml", "", []string{"config file none.yaml: no such file or directory"}},
		{"--config=typo.yaml", "", []string{"config file typo.yaml: line 1: learning_rate: no such setting; did you mean lr?"}},
		{"--config=near.yaml", "", []string{"line 2: hiden: no such setting; did you mean hidden?"}},
		{"--config=list.yaml", "", []string{"line 1: write one \"flag: value\" per line"}},
		{"--config=nested.yaml", "", []string{"line 1: lr: give it one value"}},
		{"--config=twice.yaml", "", []string{"line 2: lr: it is set twice"}},
		{"--config=bad.yaml", "", []string{"--lr=fast: give a number (from file bad.yaml)"}},
		{"--config=broken.yaml", "", []string{"config file broken.yaml: line "}},
		{"", "DORYLUS_LERNING_RATE=1", []string{"environment variable DORYLUS_LERNING_RATE: no such setting; did you mean DORYLUS_LR?"}},
		{"", "DORYLUS_HIDEN=1", []string{"did you mean DORYLUS_HIDDEN?"}},
		{"", "DORYLUS_LR=x", []string{"--lr=x: give a number (from env DORYLUS_LR)"}},
		{"", "DORYLUS_CONFIG=none.yaml", []string{"config file none.yaml"}},
	} {
		t.Run(test.args+test.env, func(t *testing.T) {
			wantFailure(t, call(t, dir, []string{test.env}, strings.Fields(test.args)...), exitUsage, test.want...)
		})
	}
}

func TestSeveralProblemsAreReportedAtOnce(t *testing.T) {
	r := call(t, t.TempDir(), nil, "--lr=-1", "--epochs=-1", "--order=best")
	if r.code != exitUsage || strings.Count(r.err, "dorylus-engine: --") != 3 {
		t.Errorf("exit %d, want 2 and a line for each of three problems:\n%s", r.code, r.err)
	}
}

func TestHelpNamesEveryFlagAndCommand(t *testing.T) {
	help := mustRun(t, t.TempDir(), "--help")
	for _, h := range settingHelp {
		if !strings.Contains(help, "--"+h.name+" ") {
			t.Errorf("--%s is not in the help", h.name)
		}
	}
	for _, text := range append(groups, "Examples:", "train ", "prepare ", "check ", "predict ", "report ", "devices ", "config ",
		"completion ", "version ", `(default "cora")`, "(default 200)", "(default 0.5)") {
		if !strings.Contains(help, text) {
			t.Errorf("%q is not in the help", text)
		}
	}
	for _, c := range []string{"train", "prepare", "check", "predict", "report", "devices", "config print"} {
		if out := mustRun(t, t.TempDir(), append(strings.Fields(c), "--help")...); !strings.Contains(out, "Usage:\n  dorylus-engine "+c) {
			t.Errorf("help of %s:\n%s", c, out)
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		if got := mustRun(t, t.TempDir(), arg); got != "dorylus-engine test\n" {
			t.Errorf("%s prints %q", arg, got)
		}
	}
	if got := mustRun(t, t.TempDir(), "__complete", "--optimizer", ""); !strings.HasPrefix(got, "adam\nadamw\nsgd\n") {
		t.Errorf("completion of --optimizer gives %q", got)
	}
}

func TestEverySettingHasHelp(t *testing.T) {
	c := engine.DefaultConfig("gcn")
	known := map[string]bool{}
	for _, h := range settingHelp {
		known[h.name] = true
	}
	for _, s := range c.Settings() {
		if !known[s.Name] {
			t.Errorf("setting %s has no line in settingHelp", s.Name)
		}
	}
	if len(known) != len(c.Settings()) {
		t.Errorf("%d lines of help for %d settings", len(known), len(c.Settings()))
	}
}

func TestOrdersAreThoseOfPrepare(t *testing.T) {
	if got, want := strings.Join(engine.Orders, " "), strings.Join(order.Methods, " "); got != want {
		t.Errorf("--order knows %s, prepare %s", got, want)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"data", "dropout", "input-dropout", "epochs", "hidden", "lr", "layers"}
	for word, want := range map[string]string{
		"dataset": "data", "epohcs": "epochs", "hid": "hidden", "input-drop": "input-dropout", "lr-rate": "", "l": "lr",
		"dropuot": "dropout", "xyz": "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for _, test := range []struct {
		err  error
		want string
	}{
		{a, "a"},
		{errors.Join(a, b), "a|b"},
		{usage(errors.Join(a, errors.Join(b, a))), "a|b|a"},
		{fmt.Errorf("%w beside %w", a, b), "a beside b"},
		{fmt.Errorf("write x: %w", syscall.ENOSPC), "write x: no space left on device; free some space, or choose a folder on another disk"},
	} {
		if got := strings.Join(problems(test.err), "|"); got != test.want {
			t.Errorf("problems(%v) = %s, want %s", test.err, got, test.want)
		}
	}
}
