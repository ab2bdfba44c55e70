package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// object is a JSON object that must be all of text.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("more than one JSON object:\n%s", text)
	}
	return m
}

// summaryKeys are those that every summary must have.
var summaryKeys = strings.Fields(`mode model dataset seed vertices edges epochs_run best_epoch loss train_acc val_acc test_acc metric
	epoch_seconds total_seconds peak_memory_bytes task_seconds staleness cost_usd weights_sha256 predictions_sha256 reason`)

func TestJSONIsTheOnlyOutputAndIsKept(t *testing.T) {
	dir := t.TempDir()
	r := call(t, dir, nil, "--json", "--epochs=3", "--progress=none", "--out=RUN", "--seed=5")
	if r.code != exitDone || r.err != "" {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	m := object(t, r.out)
	for _, k := range summaryKeys {
		if _, ok := m[k]; !ok {
			t.Errorf("%s is missing in\n%s", k, r.out)
		}
	}
	for k, want := range map[string]any{"mode": "cpu", "model": "gcn", "dataset": "cora", "seed": 5.0, "vertices": 2708.0, "edges": 10556.0,
		"epochs_run": 3.0, "metric": "accuracy", "reason": "epochs"} {
		if m[k] != want {
			t.Errorf("%s is %v, want %v", k, m[k], want)
		}
	}
	if kept, err := os.ReadFile(filepath.Join(dir, "RUN/summary.json")); err != nil || string(kept) != r.out {
		t.Errorf("summary.json differs from standard output (%v):\n%s", err, kept)
	}
}

func TestRunFolder(t *testing.T) {
	dir := t.TempDir()
	out := mustRun(t, dir, "--epochs=4", "--out=RUN", "--task-events", "--lr=0.05")
	if !strings.Contains(out, "Kept in    RUN") || !strings.Contains(out, "4 epochs, as asked for") {
		t.Errorf("human summary:\n%s", out)
	}
	for _, name := range []string{"config.yaml", "events.jsonl", "summary.json", "trace.json", "events.out.tfevents.*"} {
		if found, _ := filepath.Glob(filepath.Join(dir, "RUN", name)); len(found) != 1 {
			t.Errorf("RUN has %d files %s", len(found), name)
		}
	}
	trace, err := os.ReadFile(filepath.Join(dir, "RUN/trace.json"))
	if err != nil || !json.Valid(trace) {
		t.Errorf("trace.json is not valid (%v)", err)
	}
	if value, origin := printed(t, mustRun(t, dir, "config", "print", "--config=RUN/config.yaml"), "lr"); value != "0.05" || origin != "file RUN/config.yaml" {
		t.Errorf("lr in RUN/config.yaml is %s from %s", value, origin)
	}
	if r := call(t, dir, nil, "report", "RUN"); r.code != exitDone || !strings.Contains(r.err, "agrees") || !strings.Contains(r.out, "best") {
		t.Errorf("report: exit %d\n%s%s", r.code, r.out, r.err)
	}
	summary, err := os.ReadFile(filepath.Join(dir, "RUN/summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := mustRun(t, dir, "report", "--json", "RUN"); got != string(summary) {
		t.Errorf("report --json\n%s\nsummary.json\n%s", got, summary)
	}
	wantFailure(t, call(t, dir, nil, "--out=RUN"), exitFailed, "--out=RUN holds a run already", "--resume=RUN")

	write(t, dir, "RUN/summary.json", strings.Replace(string(summary), `"epochs_run": 4`, `"epochs_run": 5`, 1))
	if r := call(t, dir, nil, "report", "--json", "RUN"); r.code != exitFailed || !strings.Contains(r.err, "disagrees with the events in epochs_run") {
		t.Errorf("report of an edited summary: exit %d\n%s", r.code, r.err)
	}
}

func TestSeveralRuns(t *testing.T) {
	dir := t.TempDir()
	m := object(t, mustRun(t, dir, "--json", "--runs=3", "--epochs=5", "--out=RUNS", "--progress=none", "--seed=10"))
	runs, _ := m["runs"].([]any)
	if len(runs) != 3 {
		t.Fatalf("%d runs in %v", len(runs), m)
	}
	mean := 0.0
	for i, r := range runs {
		one := r.(map[string]any)
		if one["seed"] != float64(10+i) {
			t.Errorf("run %d has seed %v", i, one["seed"])
		}
		mean += one["test_acc"].(float64) / 3
	}
	if got := m["test_acc"].(float64); got-mean > 1e-12 || mean-got > 1e-12 || m["test_acc_std"] == nil {
		t.Errorf("test_acc %v ± %v, want mean %v", got, m["test_acc_std"], mean)
	}
	if runs[0].(map[string]any)["weights_sha256"] == runs[1].(map[string]any)["weights_sha256"] {
		t.Error("two seeds gave the same weights")
	}
	alone := object(t, mustRun(t, dir, "--json", "--epochs=5", "--progress=none", "--seed=11"))
	if alone["weights_sha256"] != runs[1].(map[string]any)["weights_sha256"] {
		t.Error("run 1 from seed 10 differs from a run of seed 11")
	}
	if r := call(t, dir, nil, "report", "RUNS"); r.code != exitDone || !strings.Contains(r.err, "agrees") {
		t.Errorf("report: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestProgressStyles(t *testing.T) {
	dir := t.TempDir()
	if r := call(t, dir, nil, "--epochs=100"); strings.Count(r.err, "\nepoch ") < 20 || strings.Count(r.err, "\nepoch ") > 22 || strings.Contains(r.err, "\r") {
		t.Errorf("plain progress of 100 epochs:\n%s", r.err)
	}
	r := call(t, dir, nil, "--epochs=3", "--progress=json", "--json")
	lines := strings.Split(strings.TrimSpace(r.err), "\n")
	if len(lines) != 3 || object(t, lines[2])["epoch"] != 3.0 {
		t.Errorf("JSON progress:\n%s", r.err)
	}
}

func TestDryRunTrainsNothing(t *testing.T) {
	dir := t.TempDir()
	out := mustRun(t, dir, "--dry-run", "--epochs=7", "--out=RUN")
	if !strings.Contains(out, "Would train gcn for 7 epochs") || !strings.Contains(out, "140 training, 500 validation and 1000 test") {
		t.Errorf("dry run says\n%s", out)
	}
	if exists(filepath.Join(dir, "RUN")) {
		t.Error("a dry run made the folder RUN")
	}
	if m := object(t, mustRun(t, dir, "--dry-run", "--json")); m["dry_run"] != true || m["train_rows"] != 140.0 {
		t.Errorf("dry run as JSON: %v", m)
	}
}

func TestStoreTrainsLikeItsSource(t *testing.T) {
	dir := t.TempDir()
	prep := object(t, mustRun(t, dir, "prepare", "cora", "-o", "store", "--json"))
	if prep["vertices"] != 2708.0 || len(prep["changes"].([]any)) == 0 {
		t.Errorf("prepare: %v", prep)
	}
	args := []string{"--json", "--epochs=3", "--progress=none"}
	direct := object(t, mustRun(t, dir, args...))
	stored := object(t, mustRun(t, dir, append(args, "--data=store")...))
	for _, k := range []string{"dataset", "vertices", "edges", "weights_sha256", "predictions_sha256"} {
		if direct[k] != stored[k] {
			t.Errorf("%s: %v from the source, %v from the store", k, direct[k], stored[k])
		}
	}
	for _, flag := range []string{"--features=identity", "--order=natural", "--split=planetoid", "--split-file=x.json"} {
		wantFailure(t, call(t, dir, nil, "--data=store", flag), exitUsage, flag, "store is a store", "prepare its source again")
	}
	wantFailure(t, call(t, dir, nil, "prepare", "cora", "-o", "store"), exitFailed, "store", "exists")
	mustRun(t, dir, "prepare", "cora", "-o", "store", "--overwrite", "--order=natural")
	if out := mustRun(t, dir, "check", "store"); !strings.Contains(out, "Nothing found") {
		t.Errorf("check of a store:\n%s", out)
	}
}

// started runs the program until it has shown an epoch, and then sends signals.
func started(t *testing.T, dir string, args []string, signals ...os.Signal) result {
	t.Helper()
	cmd := exec.Command(program, append(args, "--progress=json", "--epochs=1000000")...)
	cmd.Dir, cmd.Env = dir, cleanEnv()
	var out strings.Builder
	cmd.Stdout = &out
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(pipe)
	for line := ""; !strings.Contains(line, `"epoch":`); {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("the program ended before its first epoch: %v %s", err, line)
		}
	}
	for _, s := range signals {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var other []string
	for _, line := range strings.Split(string(rest), "\n") {
		if !strings.HasPrefix(line, "{") {
			other = append(other, line)
		}
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), strings.Join(other, "\n")}
}

func TestInterruptWithoutAFolderSaysThatNothingIsKept(t *testing.T) {
	r := started(t, t.TempDir(), []string{"--json"}, os.Interrupt)
	if r.code != exitInterrupted || !strings.Contains(r.err, "interrupted after") || !strings.Contains(r.err, "nothing is kept (--out=RUN would keep a checkpoint)") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	if m := object(t, r.out); m["reason"] != "interrupted" || m["epochs_run"].(float64) < 1 {
		t.Errorf("summary of an interrupted run: %v", m)
	}
}

func TestTermWithoutAFolderFails(t *testing.T) {
	if r := started(t, t.TempDir(), nil, syscall.SIGTERM); r.code != exitFailed || !strings.Contains(r.err, "told to stop (terminated) after") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
}

// The disk fills up while files of the run are written: that is warned of once
// per file, and training goes on.
func TestFullDiskIsWarnedOf(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `trap '' XFSZ; ulimit -f 8; exec "$0" "$@"`, program, "--epochs=60", "--out=RUN", "--task-events", "--progress=none")
	r := finish(t, cmd, dir, nil)
	for _, name := range []string{"RUN/events.jsonl", "RUN/trace.json"} {
		if n := strings.Count(r.err, "warning: write "+name+": "); n != 1 {
			t.Errorf("%d warnings about %s in\n%s", n, name, r.err)
		}
	}
	if !strings.Contains(r.out, "60 epochs") {
		t.Errorf("training did not go on:\n%s%s", r.out, r.err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "RUN/.*")); len(left) > 0 {
		t.Errorf("temporary files were left: %q", left)
	}
}

func TestUnusableRunFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "x")
	wantFailure(t, call(t, dir, nil, "--out=file"), exitFailed, "make the folder --out=file", "not a directory", "choose one that can be written to")
	wantFailure(t, call(t, dir, nil, "--out=file/RUN"), exitFailed, "make the folder --out=file/RUN")
	wantFailure(t, call(t, dir, nil, "--resume=none"), exitFailed, "resume none: config.yaml: no such file or directory", "name a folder that --out made")
	wantFailure(t, call(t, dir, nil, "report", "none"), exitFailed, "report none: no such file or directory")
	wantFailure(t, call(t, dir, nil, "report", "."), exitFailed, "it holds no events.jsonl")
	wantFailure(t, call(t, dir, nil, "--data=none", "--out=RUN"), exitFailed, "none", "no such file or directory")
	if exists(filepath.Join(dir, "RUN")) {
		t.Error("a run that never began left the folder RUN")
	}
	if left, _ := os.ReadDir(dir); !slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == "file" }) || len(left) != 1 {
		t.Errorf("files were left: %v", left)
	}
}
