package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// withWorker builds the worker beside the program, once.
func withWorker(t *testing.T) {
	t.Helper()
	at := filepath.Join(filepath.Dir(program), workerName)
	if _, err := os.Stat(at); err == nil {
		return
	}
	cmd := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", at, "../dorylus-lambda")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
}

// hashes are the weights and predictions of a run's summary.
func hashes(t *testing.T, args ...string) [2]any {
	t.Helper()
	r := call(t, t.TempDir(), nil, append([]string{"--json", "--progress=none", "--epochs=6"}, args...)...)
	if r.code != 0 {
		t.Fatalf("%v: exit code %d\n%s", args, r.code, r.err)
	}
	var s map[string]any
	if err := json.Unmarshal([]byte(r.out), &s); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, r.out)
	}
	return [2]any{s["weights_sha256"], s["predictions_sha256"]}
}

// Real worker processes behind the embedded service give the bits of the cores, faults
// or not.
func TestLambdaModeGivesTheSameBits(t *testing.T) {
	withWorker(t)
	models := []string{"gcn", "gat"}
	if testing.Short() {
		models = models[:1]
	}
	for _, model := range models {
		want := hashes(t, "--model="+model)
		for _, args := range [][]string{
			{"--lambdas=1"}, {"--lambdas=3", "--intervals=8"}, {"--lambdas=8", "--intervals=8"},
			{"--lambdas=3", "--chaos=seed=1,crash=0.1,late-reply=0.1,duplicate-reply=0.1,delay=100ms"},
			{"--lambdas=2", "--chaos=seed=2,throttle=0.5,lose-reply=0.1"},
			{"--lambdas=3", "--intervals=4", "--lambda-transport=inline"},
			{"--lambdas=2", "--intervals=4", "--lambda-transport=inline", "--chaos=seed=5,crash=0.05,duplicate-reply=0.2,server-error=0.05"},
		} {
			if got := hashes(t, append(args, "--mode=lambda", "--model="+model)...); got != want {
				t.Errorf("%s %v: weights and predictions %.12v, want %.12v", model, args, got, want)
			}
		}
	}
	if out, err := exec.Command("pgrep", "-f", filepath.Join(filepath.Dir(program), workerName)).Output(); err == nil {
		t.Errorf("workers are left behind: %s", out)
	}
}

// Ctrl-C while all workers hang: the run ends within the time that workers have to leave,
// far below the limits of its tasks, with its checkpoint and nothing left behind.
func TestInterruptOfLambdaModeDoesNotWaitForHungWorkers(t *testing.T) {
	withWorker(t)
	dir := t.TempDir()
	cmd := command(t, "--mode=lambda", "--lambdas=2", "--intervals=4", "--epochs=1000000", "--progress=json", "--out=RUN")
	cmd.Dir, cmd.Env = dir, cleanEnv()
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
	workers := children(t, cmd.Process.Pid)
	if len(workers) == 0 {
		t.Fatal("no worker runs")
	}
	for _, w := range workers {
		if err := syscall.Kill(w, syscall.SIGSTOP); err != nil {
			t.Fatalf("stop worker %d: %v", w, err)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the program ended with %v\n%s", err, rest)
	}
	if exit.ExitCode() != exitInterrupted { // -1 if it waited for them, and was killed
		t.Errorf("exit code %d, want %d\n%s", exit.ExitCode(), exitInterrupted, rest)
	}
	if !strings.Contains(string(rest), "go on with --resume=RUN") {
		t.Errorf("no word of the checkpoint:\n%s", rest)
	}
	for _, w := range workers {
		if err := syscall.Kill(w, 0); err == nil {
			t.Errorf("worker %d is left behind", w)
		}
	}
}

// children are the processes that one has started.
func children(t *testing.T, of int) []int {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(of)).Output()
	if err != nil {
		t.Skipf("SKIPPED: pgrep cannot list the workers: %v", err)
	}
	var pids []int
	for _, s := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func TestLambdaModeRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--lambdas=0"}, "--lambdas=0: give a number of workers from 1 on, or auto"},
		{[]string{"--lambda-memory=64"}, "--lambda-memory=64: give 128 to 10240 MB"},
		{[]string{"--lambda-endpoint=aws"}, "--lambda-address"},
		{[]string{"--lambda-endpoint=there"}, "--lambda-endpoint=there: give local, aws, or a URL"},
		{[]string{"--lambda-endpoint=http://127.0.0.1:1", "--chaos=crash=1"}, "only the local service injects faults"},
		{[]string{"--chaos=crash=2"}, "chaos"},
		{[]string{"--wire-precision=int8"}, "--wire-precision=int8: choose one of fp32, bf16, fp16"},
	} {
		r := call(t, t.TempDir(), nil, append([]string{"--mode=lambda", "--epochs=2"}, c.args...)...)
		if r.code != exitUsage || !strings.Contains(r.err, c.want) {
			t.Errorf("%v: exit code %d, %q, want %d and %q", c.args, r.code, r.err, exitUsage, c.want)
		}
	}
}
