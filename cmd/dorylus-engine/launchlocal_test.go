package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// servers are the process numbers of servers that tests have started, by "graph 1".
func servers(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		words := strings.Split(string(text), "\x00")
		if err != nil || len(words) < 4 || words[0] != program || words[1] != "serve" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		found[words[2]+" "+strings.TrimPrefix(words[3], "--rank=")] = pid
	}
	return found
}

// ownTemp gives a test a folder for temporary files of its own.
func ownTemp(t *testing.T) { t.Setenv("TMPDIR", t.TempDir()) }

// nobodyLeft checks that no server outlives its launcher.
func nobodyLeft(t *testing.T) {
	t.Helper()
	if left := servers(t); len(left) > 0 {
		t.Errorf("servers are left: %v", left)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "dorylus-launch-*")); err != nil || len(left) > 0 {
		t.Errorf("certificates are left: %v (%v)", left, err)
	}
}

// launched runs launch local until it has shown an epoch, calls then, and returns how it
// ended.
func launched(t *testing.T, dir string, then func(p *os.Process), args ...string) result {
	t.Helper()
	cmd := command(t, append([]string{"launch", "local", "--progress=json"}, args...)...)
	cmd.Dir, cmd.Env = dir, cleanEnv()
	var out bytes.Buffer
	cmd.Stdout = &out
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	in := bufio.NewReader(pipe)
	for line := ""; !strings.Contains(line, `"epoch":`); {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("it ended before its first epoch: %v %s%s", err, errs.String(), line)
		}
		errs.WriteString(line)
	}
	then(cmd.Process)
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rest)) {
		if !strings.HasPrefix(line, "{") {
			errs.WriteString(line)
		}
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// sums are what runs of the same bits have the same.
var sums = []string{"weights_sha256", "predictions_sha256", "loss", "val_acc", "test_acc", "epochs_run", "best_epoch", "reason", "vertices", "edges"}

func sameSums(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	for _, k := range sums {
		if got[k] != want[k] {
			t.Errorf("%s: %s is %v, want %v", what, k, got[k], want[k])
		}
	}
}

func TestLaunchLocalIsTheRunOfOneProcess(t *testing.T) {
	ownTemp(t)
	dir := t.TempDir()
	train := []string{"--json", "--progress=none", "--epochs=12", "--model=sage", "--hidden=8"}
	want := object(t, mustRun(t, dir, train...))
	r := call(t, dir, nil, append([]string{"launch", "local", "--servers=3", "--params=2", "--out=RUN"}, train...)...)
	if r.code != exitDone || r.err != "" {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	sameSums(t, "3 graph servers and 2 parameter servers", object(t, r.out), want)
	nobodyLeft(t)
	kept, err := os.ReadFile(filepath.Join(dir, "RUN", summaryFile))
	if err != nil || string(kept) != r.out {
		t.Errorf("summary.json (%v)\n%s\nstandard output\n%s", err, kept, r.out)
	}
	told := ""
	for _, s := range object(t, r.out)["servers"].([]any) {
		one := s.(map[string]any)
		told += fmt.Sprintf("%v %v %v; ", one["role"], one["rank"], one["peak_memory_bytes"].(float64) > 1<<20)
	}
	if want := "<nil> 0 true; <nil> 1 true; <nil> 2 true; param 0 true; param 1 true; "; told != want {
		t.Errorf("servers tell of their memory %q, want %q", told, want)
	}
	wantFailure(t, call(t, dir, nil, append([]string{"launch", "local", "--out=RUN"}, train...)...), exitFailed, "--out=RUN holds a run already")
	mustRun(t, dir, "report", "RUN")
	mustRun(t, dir, "predict", "--run=RUN", "-o", "p.csv")
}

func TestLaunchLocalRuns(t *testing.T) {
	dir := t.TempDir()
	train := []string{"--json", "--progress=none", "--epochs=4", "--runs=2", "--seed=3"}
	want := object(t, mustRun(t, dir, train...))
	got := object(t, mustRun(t, dir, append([]string{"launch", "local"}, train...)...))
	sameSums(t, "two runs", got, want)
	if got["test_acc_std"] != want["test_acc_std"] {
		t.Errorf("deviation %v, want %v", got["test_acc_std"], want["test_acc_std"])
	}
}

// A signal to the launcher stops all; the run can be gone on with, by one process too.
func TestLaunchLocalStops(t *testing.T) {
	ownTemp(t)
	for signal, code := range map[os.Signal]int{os.Interrupt: exitInterrupted, syscall.SIGTERM: exitTryAgain} {
		dir := t.TempDir()
		r := launched(t, dir, func(p *os.Process) {
			if err := p.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}, "--epochs=1000000", "--out=RUN", "--json")
		if r.code != code || !strings.Contains(r.err, "go on with --resume=RUN") {
			t.Errorf("%v: exit %d, want %d\n%s", signal, r.code, code, r.err)
		}
		nobodyLeft(t)
		done := object(t, r.out)
		epochs := int(done["epochs_run"].(float64))
		more := []string{"--resume=RUN", "--out=B", "--epochs=" + itoa(epochs+3), "--json", "--progress=none"}
		again := object(t, mustRun(t, dir, append([]string{"launch", "local", "--servers=3"}, more...)...))
		if again["epochs_run"] != float64(epochs+3) || again["reason"] != "epochs" {
			t.Errorf("%v: went on from %d epochs to %v, %v", signal, epochs, again["epochs_run"], again["reason"])
		}
	}
}

// A server that is killed is named, and all go on from the last checkpoint, with the bits
// of an undisturbed run; without restarts the user may.
func TestLaunchLocalLosesAServer(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it runs many processes")
	}
	ownTemp(t)
	train := []string{"--json", "--epochs=400", "--eval-every=50", "--checkpoint-every=20"}
	want := object(t, mustRun(t, t.TempDir(), append(train[:3:3], "--progress=none")...))
	for _, who := range []string{"graph 1", "graph 0", "param 0"} {
		dir := t.TempDir()
		kill := func(*os.Process) {
			// The launcher has seen an epoch; a checkpoint is there or, rarely, not: then all begin again.
			if err := syscall.Kill(servers(t)[who], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		name := strings.NewReplacer("graph", "graph server", "param", "parameter server").Replace(who)
		r := launched(t, dir, kill, append([]string{"--max-restarts=1", "--out=RUN"}, train...)...)
		if r.code != exitDone || !strings.Contains(r.err, "starting all servers again (1 of 1): "+name+" at 127.0.0.1:") {
			t.Fatalf("%s is killed: exit %d\n%s%s", who, r.code, r.out, r.err)
		}
		sameSums(t, who+" was killed", object(t, r.out), want)
		nobodyLeft(t)
		events, err := os.ReadFile(filepath.Join(dir, "RUN", eventsFile))
		if err != nil || !strings.Contains(string(events), "started again, because "+name) {
			t.Errorf("the events don't name %s (%v)", who, err)
		}
	}
}

// A launcher that is killed takes its servers with it: its standard error, which its
// servers hold too, ends.
func TestLaunchLocalKilled(t *testing.T) {
	ownTemp(t)
	r := launched(t, t.TempDir(), func(p *os.Process) {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}, "--epochs=1000000")
	if r.code != -1 {
		t.Errorf("exit %d", r.code)
	}
	mustRun(t, t.TempDir(), "launch", "local", "--epochs=1", "--progress=none") // removes certificates that stayed behind
	nobodyLeft(t)
}
