package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// quiet are flags that every training of these tests has.
var quiet = []string{"--json", "--progress=none"}

func TestResumedRunEqualsAnUninterruptedOne(t *testing.T) {
	dir := t.TempDir()
	straight := object(t, mustRun(t, dir, append(quiet, "--epochs=20", "--seed=3")...))
	mustRun(t, dir, append(quiet, "--epochs=9", "--seed=3", "--out=A")...)
	elsewhere := object(t, mustRun(t, dir, append(quiet, "--resume=A", "--epochs=20", "--out=B")...))
	inPlace := object(t, mustRun(t, dir, append(quiet, "--resume=A", "--epochs=20")...))
	for name, got := range map[string]map[string]any{"into another folder": elsewhere, "in its own folder": inPlace} {
		for _, k := range []string{"weights_sha256", "predictions_sha256", "epochs_run", "best_epoch", "loss", "val_acc", "test_acc", "seed"} {
			if got[k] != straight[k] {
				t.Errorf("resumed %s: %s is %v, straight %v", name, k, got[k], straight[k])
			}
		}
	}
	for _, run := range []string{"A", "B"} {
		if r := call(t, dir, nil, "report", run); r.code != exitDone || !strings.Contains(r.err, "agrees") {
			t.Errorf("report %s: exit %d\n%s", run, r.code, r.err)
		}
	}
	if traces, _ := filepath.Glob(filepath.Join(dir, "A", "trace*.json")); len(traces) != 2 {
		t.Errorf("traces of two segments: %q", traces)
	}
}

func TestInterruptKeepsACheckpoint(t *testing.T) {
	for signal, code := range map[os.Signal]int{os.Interrupt: exitInterrupted, syscall.SIGTERM: exitTryAgain} {
		dir := t.TempDir()
		r := started(t, dir, []string{"--out=RUN"}, signal)
		if r.code != code || !strings.Contains(r.err, "go on with --resume=RUN") {
			t.Errorf("%v: exit %d, want %d\n%s", signal, r.code, code, r.err)
		}
		done := object(t, mustRun(t, dir, "report", "--json", "RUN"))
		epochs := int(done["epochs_run"].(float64))
		again := object(t, mustRun(t, dir, append(quiet, "--resume=RUN", "--epochs="+itoa(epochs+2))...))
		if again["epochs_run"] != float64(epochs+2) || again["reason"] != "epochs" {
			t.Errorf("%v: went on from %d epochs to %v, %v", signal, epochs, again["epochs_run"], again["reason"])
		}
	}
}

func TestBadResumes(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, append(quiet, "--epochs=4", "--out=RUN")...)
	write(t, dir, append(smallGraph("g"), "empty/config.yaml", "", "empty/events.jsonl", "")...)
	before := tree(t, dir)
	settings, err := os.ReadFile(filepath.Join(dir, "RUN/config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--resume=RUN --model=mlp --epochs=9": "checkpoint is of gcn 2x16, this run is mlp 2x16",
		"--resume=RUN --hidden=8 --epochs=9":  "checkpoint is of gcn 2x16, this run is gcn 2x8",
		"--resume=RUN --seed=4 --epochs=9":    "checkpoint is of seed 0, this run has 4",
		"--resume=RUN --lr=0.5 --epochs=9":    "checkpoint has optimizer",
		"--resume=RUN --epochs=2":             "checkpoint has 4 epochs, more than --epochs 2",
		"--resume=RUN --data=g " + smallSplit: "checkpoint is of data cora, this run has g: give --data=cora",
		"--resume=empty":                      "it has no complete checkpoint in ckpt",
		"predict --run=empty -o p.npy":        "it has no complete checkpoint in ckpt",
		"predict --run=none -o p.npy":         "none: config.yaml: no such file",
		"predict --run=RUN --data=g -o p.npy": "features",
		"predict --run=RUN -o none/p.npy":     "none/p.npy",
	} {
		t.Run(args, func(t *testing.T) {
			wantFailure(t, call(t, dir, nil, strings.Fields(args)...), exitFailed, want)
			if after := tree(t, dir); after != before {
				t.Errorf("files before\n%safter\n%s", before, after)
			}
		})
	}
	if now, err := os.ReadFile(filepath.Join(dir, "RUN/config.yaml")); err != nil || string(now) != string(settings) {
		t.Errorf("a refused resume changed config.yaml (%v):\n%s", err, now)
	}

	t.Run("damaged checkpoint", func(t *testing.T) {
		weights, _ := filepath.Glob(filepath.Join(dir, "RUN/ckpt/*/weights.safetensors"))
		if len(weights) != 1 {
			t.Fatalf("weights: %q", weights)
		}
		if err := os.Truncate(weights[0], 100); err != nil {
			t.Fatal(err)
		}
		wantFailure(t, call(t, dir, nil, "--resume=RUN", "--epochs=9"), exitFailed, "resume RUN: load checkpoint", "weights.safetensors")
	})
	t.Run("damaged events", func(t *testing.T) {
		write(t, dir, "RUN/events.jsonl", "{\"event\":\"run_start\"}\nnonsense\n")
		r := call(t, dir, nil, "report", "RUN")
		wantFailure(t, r, exitFailed, "report RUN: read RUN/events.jsonl: line 2:")
	})
}

func TestPredict(t *testing.T) {
	dir := t.TempDir()
	summary := object(t, mustRun(t, dir, append(quiet, "--epochs=15", "--out=RUN")...))
	mustRun(t, dir, "predict", "--run=RUN", "-o", "p.csv", "--scores")
	mustRun(t, dir, "predict", "--run=RUN", "-o", "p.npy")
	f, err := os.Open(filepath.Join(dir, "p.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2709 || strings.Join(rows[0][:3], ",") != "id,class,p_0" || len(rows[1]) != 9 || rows[1][0] != "0" || rows[2708][0] != "2707" {
		t.Errorf("%d rows, the first are %v %v", len(rows), rows[0], rows[1])
	}
	// The checksum of the summary is over the same classes: int32 in the user's order.
	npy, err := os.ReadFile(filepath.Join(dir, "p.npy"))
	if err != nil {
		t.Fatal(err)
	}
	if got := sha(npy[128:]); len(npy) != 128+4*2708 || got != summary["predictions_sha256"] {
		t.Errorf("%d bytes; checksum of the classes is %s, the summary has %v", len(npy), got, summary["predictions_sha256"])
	}
	if want := "\x93NUMPY\x01\x00v\x00{'descr': '<i4', 'fortran_order': False, 'shape': (2708,), }"; !strings.HasPrefix(string(npy), want) {
		t.Errorf("header %q", npy[:128])
	}
	for _, weights := range []string{"best", "final"} {
		mustRun(t, dir, "predict", "--run=RUN", "-o", weights+".npy", "--weights="+weights, "--scores")
	}
	best, _ := os.ReadFile(filepath.Join(dir, "best.npy"))
	if !strings.Contains(string(best[:128]), "'descr': '<f4', 'fortran_order': False, 'shape': (2708,7,)") || len(best) != 128+4*7*2708 {
		t.Errorf("scores: %d bytes, header %q", len(best), best[:128])
	}
}

// Predictions of a graph whose vertices have names carry these names.
func TestPredictUsesTheUsersIDs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "g/edges.csv", "ann,bob\nbob,cid\ncid,ann\ndan,eve\neve,flo\nflo,dan\n",
		"g/labels.csv", "id,label\nann,good\nbob,good\ncid,good\ndan,bad\neve,bad\nflo,bad\n")
	mustRun(t, dir, append(quiet, "--data=g", "--features=identity", smallSplit, "--epochs=30", "--out=RUN", "--dropout=0", "--input-dropout=0", "--lr=0.1")...)
	mustRun(t, dir, "predict", "--run=RUN", "-o", "p.csv")
	got, err := os.ReadFile(filepath.Join(dir, "p.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"id,class\n", "ann,good\n", "cid,good\n", "eve,bad\n", "flo,bad\n"} {
		if !strings.Contains(string(got), line) {
			t.Errorf("%q is missing in\n%s", line, got)
		}
	}
}
