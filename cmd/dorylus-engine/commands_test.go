package main

import (
	"strings"
	"testing"
)

func TestDevices(t *testing.T) {
	dir := t.TempDir()
	m := object(t, mustRun(t, dir, "devices", "--json"))
	list, _ := m["devices"].([]any)
	defaults := 0
	text := mustRun(t, dir, "devices")
	for _, d := range list {
		d := d.(map[string]any)
		name, usable := d["name"].(string), d["usable"] == true
		if why, _ := d["why"].(string); usable == (why != "") {
			t.Errorf("%s: usable is %v, and the reason against it %q", name, usable, why)
		}
		if d["default"] == true {
			defaults++
		}
		if !strings.Contains(text, name+" ") {
			t.Errorf("%s is missing in\n%s", name, text)
		}
		r := call(t, dir, nil, "--device="+name, "--epochs=1", "--json", "--progress=none")
		switch {
		case strings.HasPrefix(name, "cuda"): // not a value of --device yet
		case usable && (r.code != exitDone || object(t, r.out)["device"] != name):
			t.Errorf("--device=%s: exit %d\n%s%s", name, r.code, r.out, r.err)
		case !usable:
			wantFailure(t, r, exitFailed, "open device "+name)
		}
	}
	if len(list) < 5 || defaults != 1 {
		t.Errorf("%d devices, %d of them the default:\n%s", len(list), defaults, text)
	}
}

func TestDevicesSelftest(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: the conformance suite of each device takes seconds; run without -short")
	}
	out := mustRun(t, t.TempDir(), "devices", "--selftest")
	if !strings.Contains(out, "checks passed") || strings.Contains(out, "failed:") {
		t.Errorf("self-test:\n%s", out)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, with("g", "features.csv", "1,0\n1,0\n1,nan\n0,1\n0,1\n0,2\n")...)
	r := call(t, dir, nil, "check", "g")
	if r.code != exitFailed || !strings.Contains(r.err, "check g: training would be wrong; findings marked error: 1") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	for _, text := range []string{"g (edgelist): 6 vertices, 7 edge records\n", "error    non-finite-features ", "\n         first ", "\n         effect ", "\n         remedy "} {
		if !strings.Contains(r.out, text) {
			t.Errorf("%q is missing in\n%s", text, r.out)
		}
	}
	j := call(t, dir, nil, "check", "g", "--json")
	m := object(t, j.out)
	first := m["findings"].([]any)[0].(map[string]any)
	if j.code != exitFailed || first["code"] != "non-finite-features" || first["severity"] != "error" || first["count"] != 1.0 {
		t.Errorf("exit %d, first finding %v", j.code, first)
	}
	mustRun(t, dir, "prepare", "g", smallSplit, "-o", "store", "--force")
	if r := call(t, dir, nil, "--data=store", "--epochs=1", "--json"); !strings.Contains(r.err, "warning: store was prepared with --force: non-finite-features") {
		t.Errorf("training on a forced store does not warn:\n%s", r.err)
	}
}

func TestPrepareSaysWhatItDid(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, smallGraph("g")...)
	out := mustRun(t, dir, "prepare", "g", "--direction=undirected", "--order=natural", smallSplit, "--seed=2", "-o", "store")
	for _, text := range []string{"Changed: added 7 reverse edges", "6 vertices, 14 edges, 2 features (dense), 2 classes; read from edgelist", "Order: natural",
		`Split "per-class:1/1": 2 training, 2 validation, 2 test vertices`, "train with: dorylus-engine --data=store"} {
		if !strings.Contains(out, text) {
			t.Errorf("%q is missing in\n%s", text, out)
		}
	}
	if out := mustRun(t, dir, "prepare", "g", "-o", "unsplit"); !strings.Contains(out, "No split: prepare again with --split") {
		t.Errorf("without a split:\n%s", out)
	}
}
