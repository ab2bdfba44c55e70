//go:build cuda

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/engine"
	"dorylus/engine/sink"
)

// emulator is the environment with the emulated device, set up as spec says. The test is
// skipped where it cannot be built.
func emulator(t *testing.T, spec string) []string {
	t.Helper()
	return append(driverEnv(cuemu.Build(t)), "DORYLUS_CUEMU="+spec)
}

// onGPU is the environment with a driver: the emulated device, or a real one where tests
// are to run on that.
func onGPU(t *testing.T) []string {
	t.Helper()
	if path := cuemu.Driver(t); path != "" {
		return driverEnv(path)
	}
	return nil
}

// must is the standard output of a call in env that has to succeed.
func must(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	r := call(t, dir, env, args...)
	if r.code != exitDone {
		t.Fatalf("dorylus-engine %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// tiny prepares a graph of 120 vertices, in blocks of 16, as dir/s.
func tiny(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	mustRun(t, dir, "prepare", "synth:sbm,vertices=120,degree=6,classes=3,features=16", "-o", "s", "--block-rows=16", "--split=random:60/20/20")
	return dir
}

// curve is the loss by epoch of the run in folder path.
func curve(t *testing.T, path string) []float64 {
	t.Helper()
	c := &losses{}
	if err := sink.ReadEventsFile(filepath.Join(path, eventsFile), c); err != nil {
		t.Fatal(err)
	}
	return c.loss
}

type losses struct{ loss []float64 }

func (l *losses) Event(e engine.Event) {
	if e, ok := e.(engine.EpochDone); ok {
		l.loss = append(l.loss, e.Loss)
	}
}

// near checks that the losses of two runs agree within 1e-4.
func near(t *testing.T, dir, a, b string, epochs int) {
	t.Helper()
	x, y := curve(t, filepath.Join(dir, a)), curve(t, filepath.Join(dir, b))
	if len(x) != epochs || len(y) != epochs {
		t.Fatalf("%s has %d epochs, %s %d, want %d", a, len(x), b, len(y), epochs)
	}
	for e := range x {
		if !(math.Abs(x[e]-y[e]) <= 1e-4*max(1, math.Abs(x[e]))) {
			t.Fatalf("loss of epoch %d: %s %v, %s %v", e+1, a, x[e], b, y[e])
		}
	}
}

// scored are the rows of a CSV file of predict --scores.
func scored(t *testing.T, path string) [][]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// sameClasses checks that two predictions agree but for ties: where the classes differ,
// the scores are the same within 1e-4, as they are everywhere.
func sameClasses(t *testing.T, a, b string) {
	t.Helper()
	x, y := scored(t, a), scored(t, b)
	if len(x) != len(y) || len(x) == 0 {
		t.Fatalf("%s has %d rows, %s %d", a, len(x), b, len(y))
	}
	number := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for i := range x {
		top, second := 0.0, 0.0
		for k := 2; k < len(x[i]); k++ {
			p, q := number(x[i][k]), number(y[i][k])
			if math.Abs(p-q) > 1e-4 {
				t.Fatalf("row %d: %s scores %v, %s %v", i, filepath.Base(a), x[i], filepath.Base(b), y[i])
			}
			if p > top {
				top, second = p, top
			} else if p > second {
				second = p
			}
		}
		if x[i][1] != y[i][1] && top-second > 2e-4 {
			t.Fatalf("row %d: class %s by %s, %s by %s, scores %v", i, x[i][1], filepath.Base(a), y[i][1], filepath.Base(b), x[i])
		}
	}
}

// TestGPUTrainsAsCPU: four models, sync and async; in sync the same bits twice.
func TestGPUTrainsAsCPU(t *testing.T) {
	env := onGPU(t)
	dir := tiny(t)
	const epochs = 20
	for _, model := range []string{"gcn", "gat", "sage", "gin"} {
		t.Run(model, func(t *testing.T) {
			train := func(mode, out string, more ...string) map[string]any {
				args := append([]string{"--data=s", "--model=" + model, "--hidden=8", "--layers=2", "--epochs=" + itoa(epochs), "--eval-every=20", "--lr=0.01", "--mode=" + mode, "--out=" + out, "--json", "--progress=none"}, more...)
				if model == "gat" {
					args = append(args, "--heads=2", "--hidden=4")
				}
				return object(t, must(t, dir, env, args...))
			}
			name := func(s string) string { return model + "-" + s }
			cpu := train("cpu", name("cpu"))
			gpu := train("gpu", name("gpu"))
			near(t, dir, name("cpu"), name("gpu"), epochs)
			if gpu["mode"] != "gpu" || gpu["device"] != "cuda:0" || gpu["precision"] != "fp32" || gpu["emulated"] != true && !cuemu.OnGPU() || gpu["test_acc"] == nil {
				t.Errorf("summary: mode %v, device %v, precision %v, emulated %v, test_acc %v", gpu["mode"], gpu["device"], gpu["precision"], gpu["emulated"], gpu["test_acc"])
			}
			g := gpu["gpus"].([]any)[0].(map[string]any)
			if g["name"] != "cuda:0" || !(g["memory_peak_bytes"].(float64) > 0) || !(g["memory_limit_bytes"].(float64) >= g["memory_peak_bytes"].(float64)) || g["memory_plan"] != "resident" {
				t.Errorf("gpus: %v", g)
			}
			if _, there := cpu["emulated"]; there || cpu["gpus"] != nil {
				t.Errorf("the summary of a run without GPU speaks of one: %v, %v", cpu["emulated"], cpu["gpus"])
			}
			if model == "gcn" {
				if again := train("gpu", name("again"), "--intervals=3"); again["weights_sha256"] != gpu["weights_sha256"] || again["predictions_sha256"] != gpu["predictions_sha256"] {
					t.Errorf("another number of intervals has other bits: %v, %v", again["weights_sha256"], gpu["weights_sha256"])
				}
			}
			must(t, dir, env, "predict", "--run="+name("gpu"), "--weights=final", "--scores", "-o", name("gg.csv"))
			must(t, dir, env, "predict", "--run="+name("cpu"), "--weights=final", "--scores", "-o", name("cc.csv"))
			sameClasses(t, filepath.Join(dir, name("gg.csv")), filepath.Join(dir, name("cc.csv")))
			// async with all patience is sync in its results.
			train("gpu", name("async"), "--pipeline=async", "--async-wait=1", "--dropout=0", "--input-dropout=0", "--attention-dropout=0")
			train("cpu", name("async-cpu"), "--pipeline=async", "--async-wait=1", "--dropout=0", "--input-dropout=0", "--attention-dropout=0")
			near(t, dir, name("async"), name("async-cpu"), epochs)
		})
	}
}

// TestGPUResumeAndPredict: a run goes on to the bit on a GPU, and within rounding in
// another mode, which is said; its model predicts anywhere.
func TestGPUResumeAndPredict(t *testing.T) {
	env := onGPU(t)
	dir := tiny(t)
	base := []string{"--data=s", "--hidden=4", "--mode=gpu", "--json", "--progress=none"}
	with := func(more ...string) []string { return append(base[:len(base):len(base)], more...) }
	whole := object(t, must(t, dir, env, with("--epochs=6", "--out=whole")...))
	must(t, dir, env, with("--epochs=3", "--out=half")...)
	if err := os.CopyFS(filepath.Join(dir, "moved"), os.DirFS(filepath.Join(dir, "half"))); err != nil {
		t.Fatal(err)
	}
	half := object(t, must(t, dir, env, "--resume=half", "--epochs=6", "--json", "--progress=none"))
	if half["weights_sha256"] != whole["weights_sha256"] || half["epochs_run"] != 6.0 {
		t.Errorf("resumed: %v after %v epochs, in one go %v", half["weights_sha256"], half["epochs_run"], whole["weights_sha256"])
	}
	r := call(t, dir, nil, "--resume=moved", "--mode=cpu", "--epochs=6", "--progress=plain")
	if r.code != exitDone || !strings.Contains(r.err, "goes on on cpu/") || !strings.Contains(r.err, "within rounding, not to the bit") {
		t.Errorf("resumed on processors: exit %d\n%s%s", r.code, r.out, r.err)
	}
	near(t, dir, "moved", "whole", 6)
	must(t, dir, env, "predict", "--run=whole", "--scores", "-o", "gpu.csv", "--embeddings=gpu.npy")
	must(t, dir, nil, "predict", "--run=whole", "--mode=cpu", "--scores", "-o", "cpu.csv")
	must(t, dir, env, "predict", "--run=moved", "--device=cuda:0", "--scores", "-o", "back.csv")
	sameClasses(t, filepath.Join(dir, "gpu.csv"), filepath.Join(dir, "cpu.csv"))
	none := driverEnv("/nowhere/libcuda.so.1")
	wantFailure(t, call(t, dir, none, "predict", "--run=whole", "-o", "x.csv"), exitFailed, "no GPU can be used", "--mode=cpu predicts on this machine's cores")
	wantFailure(t, call(t, dir, env, "predict", "--run=whole", "--mode=cpu", "--gpu=0", "-o", "x.csv"), exitUsage, "--mode=cpu: leave out --gpu")
	// Several runs are each in the summary.
	several := object(t, must(t, dir, env, with("--runs=2", "--epochs=2")...))
	if runs, _ := several["runs"].([]any); len(runs) != 2 || several["gpus"] == nil {
		t.Errorf("two runs: %v", several)
	}
}

// TestGPUMemoryIsPlanned: before anything is done, and what does not fit is refused with
// the smallest change.
func TestGPUMemoryIsPlanned(t *testing.T) {
	env := onGPU(t)
	dir := tiny(t)
	args := []string{"--data=s", "--mode=gpu", "--hidden=8", "--epochs=2", "--dry-run"}
	text := must(t, dir, env, args...)
	if !strings.Contains(text, "resident") || !strings.Contains(text, "weights") {
		t.Errorf("--dry-run says nothing of memory:\n%s", text)
	}
	plan := object(t, must(t, dir, env, append(args, "--json")...))["memory_plan"].(map[string]any)
	if plan["verdict"] != "resident" || len(plan["items"].([]any)) < 3 {
		t.Errorf("memory_plan: %v", plan)
	}
	for _, more := range []string{"--dry-run=true", "--dry-run=false"} {
		r := call(t, dir, env, append(args, more, "--gpu-memory=4096", "--progress=none")...)
		if r.code != exitFailed || !strings.Contains(r.err, "--gpu-memory") || !strings.Contains(r.err, "cuda:0") {
			t.Errorf("%s with 4096 bytes: exit %d\n%s%s", more, r.code, r.out, r.err)
		}
	}
	wantFailure(t, call(t, dir, env, append(args, "--gpu-memory=4TiB")...), exitFailed, "--gpu-memory=4TiB: cuda:0 (", "more than the ")
	wantFailure(t, call(t, dir, env, append(args, "--gpu=7")...), exitFailed, "--gpu=7: the driver shows ")
}

// TestGPUMemoryIsPlannedForEach: two GPUs of a process, and of servers, have a plan each; one
// that is refused is named; two that stream train as one that does not.
func TestGPUMemoryIsPlannedForEach(t *testing.T) {
	env, dir := emulator(t, "devices=2"), t.TempDir()
	must(t, dir, env, "prepare", "synth:sbm,vertices=1200,degree=4,classes=3,features=400", "-o", "s", "--split=random:60/20/20")
	args := []string{"--data=s", "--mode=gpu", "--hidden=32", "--epochs=2", "--eval-every=2", "--progress=none"}
	with := func(more ...string) []string { return append(args[:len(args):len(args)], more...) }
	plans := object(t, must(t, dir, env, with("--gpu=0,1", "--dry-run", "--json")...))["memory_plan"].([]any)
	least := 0.0
	for i, p := range plans {
		p := p.(map[string]any)
		if p["device"] != fmt.Sprintf("cuda:%d", i) || p["verdict"] != "resident" {
			t.Errorf("plan %d: %v", i, p)
		}
		least = max(least, p["on_gpu_bytes"].(float64))
	}
	if len(plans) != 2 {
		t.Fatalf("%d plans", len(plans))
	}
	wantFailure(t, call(t, dir, env, with("--gpu=0,1", "--gpu-memory=12MiB")...), exitFailed, "cuda:0: the run does not fit", "cuda:1: the run does not fit", "set --gpu-memory=")
	// A little less has each block summed alone, and less than that streams.
	limit, all := "", ""
	for n := int64(least); n > 12<<20 && !strings.Contains(all, "streamed"); n -= 300 << 10 {
		limit = fmt.Sprintf("--gpu-memory=%d", n)
		all = call(t, dir, env, with("--gpu=0,1", limit, "--dry-run", "--json")...).out
	}
	must(t, dir, env, with("--out=one")...)
	text := must(t, dir, env, with("--gpu=0,1", limit, "--out=both")...)
	near(t, dir, "one", "both", 2)
	streamed := 0
	for _, g := range summaryOf(t, filepath.Join(dir, "both")).GPUs {
		if g.Plan == "streamed" {
			streamed++
		}
		if g.Peak > g.Limit {
			t.Errorf("%s holds %d bytes of %d", g.Name, g.Peak, g.Limit)
		}
	}
	if streamed == 0 {
		t.Errorf("no GPU streams with %s:\n%s", limit, text)
	}
	r := call(t, dir, env, "predict", "--run=both", "--gpu=0,1", "--gpu-memory=12MiB", "-o", "p.csv")
	wantFailure(t, r, exitFailed, "cuda:0: the run does not fit")
	servers := call(t, dir, env, append([]string{"launch", "local", "--servers=2", "--dry-run"}, args...)...)
	if servers.code != exitDone || !strings.Contains(servers.out, "memory plan of cuda:0: resident") || !strings.Contains(servers.out, "memory plan of cuda:1: resident") {
		t.Errorf("two servers: exit %d\n%s%s", servers.code, servers.out, servers.err)
	}
}

// summaryOf reads the summary of a run.
func summaryOf(t *testing.T, path string) sink.Summary {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path, summaryFile))
	if err != nil {
		t.Fatal(err)
	}
	var s sink.Summary
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", path, err))
	}
	return s
}
