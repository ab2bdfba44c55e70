//go:build cuda

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestGPUEmulatedFailures: what a driver may say ends a run with the documented words and
// exit code.
func TestGPUEmulatedFailures(t *testing.T) {
	dir := tiny(t)
	train := []string{"--data=s", "--mode=gpu", "--hidden=4", "--epochs=3", "--progress=none"}
	for _, c := range []struct {
		fault string
		code  int
		words []string
	}{
		{"kernel@20:700", exitFailed, []string{"e0/i0", "a kernel failed, and the device's context is lost (CUDA error 700", "devices --selftest"}},
		{"kernel@20:719", exitFailed, []string{"e0/i0", "CUDA error 719", "devices --selftest"}},
		{"kernel@20:999", exitFailed, []string{"CUDA error 999", "devices --selftest"}},
		{"kernel@20:214", exitFailed, []string{"CUDA error 214", "choose another GPU (--gpu)", "there is no checkpoint to go on from (--out=RUN --checkpoint-every=N keeps some)"}},
		{"cuInit:100", exitFailed, []string{"--mode=gpu: no GPU can be used: ", "a driver, but no device (CUDA error 100)", "access to the GPU"}},
		{"cuInit:803", exitFailed, []string{"CUDA error 803", "reboot"}},
		{"cuDevicePrimaryCtxRetain:46", exitFailed, []string{"another process has taken the device for itself", "choose another GPU (--gpu)"}},
		{"cuModuleLoadDataEx:218", exitFailed, []string{"--mode=gpu: open cuda:0: ", "CUDA error 218"}},
		{"cuModuleLoadDataEx:222", exitFailed, []string{"--mode=gpu: open cuda:0: ", "CUDA error 222", "update NVIDIA's driver"}},
		{"cuMemAlloc@1+:2", exitFailed, []string{"the device's memory is used up (CUDA error 2: ", "--gpu-memory"}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			r := call(t, dir, emulator(t, "fault="+c.fault), append(train, "--json")...)
			said := r.err[strings.LastIndex("\n"+strings.TrimSpace(r.err), "\n"):]
			if r.code != c.code {
				t.Errorf("exit %d, want %d\n%s", r.code, c.code, r.err)
			}
			for _, w := range c.words {
				if !strings.Contains(said, w) {
					t.Errorf("%q is missing in\n%s", w, said)
				}
			}
		})
	}
	begun := time.Now()
	wantFailure(t, call(t, dir, driverEnv("/nowhere/libcuda.so.1"), train...), exitFailed, "--mode=gpu: no GPU can be used: the driver's library is missing", "install NVIDIA's driver")
	if took := time.Since(begun); took > 10*time.Second { // well below 1, but other tests run
		t.Errorf("without a driver it took %v", took)
	}
}

// TestGPUEmulatedFaultIsResumed: a device that fails in mid-run is worth another try from
// its last checkpoint, with the bits of a run that nothing happened to.
func TestGPUEmulatedFaultIsResumed(t *testing.T) {
	dir := tiny(t)
	args := []string{"--data=s", "--mode=gpu", "--hidden=4", "--epochs=4", "--checkpoint-every=1", "--progress=none"}
	must(t, dir, emulator(t, ""), append(args, "--out=whole")...)
	r := call(t, dir, emulator(t, "fault=dk_adam@5:214"), append(args, "--out=hurt")...)
	if r.code != exitTryAgain || !strings.Contains(r.err, "CUDA error 214") || !strings.Contains(r.err, "go on with --resume=hurt") {
		t.Fatalf("exit %d, want %d\n%s%s", r.code, exitTryAgain, r.out, r.err)
	}
	if s := summaryOf(t, filepath.Join(dir, "hurt")); s.Reason != "failed" || !s.Emulated || !strings.Contains(s.Error, "CUDA error 214") {
		t.Errorf("its summary: %s, emulated %v, %s", s.Reason, s.Emulated, s.Error)
	}
	must(t, dir, emulator(t, ""), "--resume=hurt", "--progress=none")
	a, b := summaryOf(t, filepath.Join(dir, "whole")), summaryOf(t, filepath.Join(dir, "hurt"))
	if a.WeightsSHA256 != b.WeightsSHA256 || a.PredictionsSHA256 != b.PredictionsSHA256 || b.EpochsRun != 4 {
		t.Errorf("weights %s after %v epochs, without the fault %s", b.WeightsSHA256, b.EpochsRun, a.WeightsSHA256)
	}
}

// TestGPUEmulatedSaysSo: nobody takes times or dollars of the emulated device for those of
// a GPU.
func TestGPUEmulatedSaysSo(t *testing.T) {
	const note = "emulated: says nothing about time or dollars"
	env, dir := emulator(t, ""), tiny(t)
	args := []string{"--data=s", "--hidden=4", "--epochs=2", "--progress=none"}
	text := must(t, dir, env, append(args, "--mode=gpu", "--out=RUN")...)
	for _, want := range []string{"EMULATED", "Time       " + note, "Cost       " + note} {
		if !strings.Contains(text, want) {
			t.Errorf("train lacks %q:\n%s", want, text)
		}
	}
	s := summaryOf(t, filepath.Join(dir, "RUN"))
	if !s.Emulated || s.Cost["total"].Known() || s.Value.Known() || s.CostNote != note {
		t.Errorf("summary: emulated %v, cost %v, value %v", s.Emulated, s.Cost, s.Value)
	}
	text = must(t, dir, nil, "report", "RUN")
	if !strings.Contains(text, "No times of tasks: "+note) || strings.Contains(text, " ms") {
		t.Errorf("report shows times:\n%s", text)
	}
	m := object(t, must(t, dir, nil, "report", "RUN", "--json"))
	if m["emulated"] != true || m["epoch_seconds"] != nil || m["total_seconds"] != nil || m["loss"] == nil {
		t.Errorf("report --json: emulated %v, seconds %v, %v, loss %v", m["emulated"], m["epoch_seconds"], m["total_seconds"], m["loss"])
	}
	modes := object(t, must(t, dir, env, append([]string{"compare", "--modes=cpu,gpu", "--json"}, args...)...))["modes"].([]any)
	cpu, gpu := modes[0].(map[string]any), modes[1].(map[string]any)
	if cpu["epoch_seconds"] == nil || gpu["epoch_seconds"] != nil || gpu["value"] != nil || gpu["value_note"] != note || gpu["test_acc"] != cpu["test_acc"] {
		t.Errorf("compare: cpu %v, gpu %v, %v, %v; test_acc %v and %v", cpu["epoch_seconds"], gpu["epoch_seconds"], gpu["value"], gpu["value_note"], cpu["test_acc"], gpu["test_acc"])
	}
	wantFailure(t, call(t, dir, env, append(args, "--mode=gpu", "--max-cost=1")...), exitFailed, "--max-cost=1: nothing is counted", note)
}

// TestGPUEmulatedServers: each server of a host takes a GPU of its own, and two devices of
// one process share a graph, with the results of one.
func TestGPUEmulatedServers(t *testing.T) {
	two, dir := emulator(t, "devices=2"), tiny(t)
	args := []string{"--data=s", "--hidden=4", "--epochs=5", "--mode=gpu", "--progress=none"}
	must(t, dir, two, append(args, "--out=one")...)
	text := must(t, dir, two, append(args, "--gpu=0,1", "--out=both")...)
	near(t, dir, "one", "both", 5)
	if !strings.Contains(text, "on cuda:0,cuda:1") {
		t.Errorf("two devices in one process:\n%s", text)
	}
	r := call(t, dir, two, append([]string{"launch", "local", "--servers=2", "--out=servers"}, args...)...)
	if r.code != exitDone || !strings.Contains(r.err, "[graph 1] cuda:1: EMULATED") {
		t.Fatalf("launch local: exit %d\n%s%s", r.code, r.out, r.err)
	}
	near(t, dir, "one", "servers", 5)
	// A server that is alone on its host takes one as well, and says that the other is idle.
	r = call(t, dir, two, append([]string{"launch", "local", "--servers=1", "--gpu=1,0", "--out=alone"}, args[:len(args)-1]...)...)
	if r.code != exitDone || !strings.Contains(r.err, "of --gpu=1,0 cuda:0 stays idle here") || !strings.Contains(r.out, "gpu mode on cuda:1, ") {
		t.Fatalf("launch local, one server: exit %d\n%s%s", r.code, r.out, r.err)
	}
	near(t, dir, "one", "alone", 5)
	must(t, dir, two, "predict", "--servers=2", "--run=servers", "--scores", "-o", "servers.csv")
	must(t, dir, two, "predict", "--gpu=0,1", "--run=both", "--scores", "-o", "both.csv")
	sameClasses(t, filepath.Join(dir, "servers.csv"), filepath.Join(dir, "both.csv"))
	wantFailure(t, call(t, dir, emulator(t, "devices=1"), append([]string{"launch", "local", "--servers=2"}, args...)...), exitFailed,
		"this is graph server 2 of 2 on this host, which has 1 GPUs for them (cuda:0)")
	// By ssh, each on the host that the file names; the command stands for ssh.
	write(t, dir, "ssh.sh", "#!/bin/sh\nshift\nexec sh -c \"$*\"\n")
	if err := os.Chmod(filepath.Join(dir, "ssh.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	addrs := free(t, 3)
	write(t, dir, "hosts", addrs[0]+" graph\n"+addrs[1]+" graph\n"+addrs[2]+" param\n")
	r = call(t, dir, two, append([]string{"launch", "ssh", "--hosts=hosts", "--ssh=" + filepath.Join(dir, "ssh.sh"), "--program=" + program, "--dir=" + dir, "--insecure", "--out=ssh"}, args...)...)
	if r.code != exitDone {
		t.Fatalf("launch ssh: exit %d\n%s%s", r.code, r.out, r.err)
	}
	near(t, dir, "one", "ssh", 5)
}

// TestDevicesEmulatedGPUsAreChecked: in a process of its own, on each of them, and no failure is
// overlooked.
func TestDevicesEmulatedGPUsAreChecked(t *testing.T) {
	dir := t.TempDir()
	checks := []string{"devices", "--selftest", "--gpu=auto", "--only=Adam", "--json"}
	line := func(text, name string) map[string]any {
		for _, d := range object(t, text)["devices"].([]any) {
			if d := d.(map[string]any); d["name"] == name {
				return d
			}
		}
		t.Fatalf("no %s in\n%s", name, text)
		return nil
	}
	text := must(t, dir, emulator(t, "devices=2"), checks...)
	for _, name := range []string{"cuda:0", "cuda:1"} {
		if d := line(text, name); !(d["checks"].(float64) > 0) || d["failed"] != nil {
			t.Errorf("%v", d)
		}
	}
	if d := line(text, "cpu/scalar"); d["checks"] != nil {
		t.Errorf("--gpu=auto checks processors: %v", d)
	}
	r := call(t, dir, emulator(t, "fault=dk_adam@1+:719"), checks...)
	if d := line(r.out, "cuda:0"); r.code != exitFailed || d["failed"] == nil || !strings.Contains(r.err, "checks of the self-test failed") {
		t.Errorf("a kernel that fails: exit %d, %v\n%s", r.code, d, r.err)
	}
	r = call(t, dir, emulator(t, "fault=dk_adam@1+:hang"), append(checks, "--selftest-timeout=3s")...)
	if d := line(r.out, "cuda:0"); r.code != exitFailed || !strings.Contains(fmt.Sprint(d["failed"]), "it did not end within 3s") {
		t.Errorf("a kernel that hangs: exit %d, %v\n%s", r.code, d, r.err)
	}
	r = call(t, dir, emulator(t, "devices=0"), checks...)
	if r.code != exitFailed || !strings.Contains(r.err, "no GPU was checked") {
		t.Errorf("no device: exit %d\n%s", r.code, r.err)
	}
}
