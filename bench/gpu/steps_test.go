package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSteps: each step leaves a line and a log, whatever it prints and however it ends,
// and those after it run.
func TestSteps(t *testing.T) {
	for _, tool := range []string{"bash", "timeout"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
	}
	out := t.TempDir()
	cmd := exec.Command("bash", "-uo", "pipefail", "-c", `
. ./steps.sh
step good 10 echo fine
step bad 10 sh -c 'printf "first\nsaid \"no\" \\ and\ttab\n"; exit 3'
step slow 1 sleep 60
step missing 10 ./no-such-program
skip toolkit "no nvcc"
train cora 10 --mode=gpu
train lost 10 --fail
cublas || skip cublas "$(without_cublas)"
mv "$OUT/devices.json" "$OUT/none.json"
skip cublas "$(without_cublas)"
mv "$OUT/none.json" "$OUT/devices.json"
emulated && echo emulated
echo "$failures failures"
`)
	engine := filepath.Join(out, "engine")
	script := "#!/bin/sh\ncase \"$*\" in *--fail*) echo half; exit 1;; esac\necho '{\"args\": \"'\"$*\"'\"}'\n"
	// As devices --json has it, with the lines apart.
	devices := "{\"cuda\": {\n\"emulated\": true,\n\"cublas\": {\n\"problem\": \"searched \\\"a\\\\b\\\": none\"\n},\n\"problem\": \"another\"}}"
	for name, text := range map[string]string{"engine": script, "devices.json": devices} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = append(os.Environ(), "OUT="+out, "ENGINE="+engine)
	text, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(text), "emulated\n4 failures\n") {
		t.Fatalf("%v\n%s", err, text)
	}
	f, err := os.Open(filepath.Join(out, "steps.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []string
	for in := bufio.NewScanner(f); in.Scan(); {
		var s step
		if err := json.Unmarshal(in.Bytes(), &s); err != nil {
			t.Errorf("%s: %v", in.Text(), err)
		}
		got = append(got, s.Step+" "+s.Status+" "+s.Why)
	}
	want := []string{"good ok ", `bad failed exit 3: said "no" \ and tab`, "slow timeout no end within 1 s", "missing failed exit 127: ", "toolkit skipped no nvcc",
		"train-cora ok ", "train-lost failed exit 1: ", `cublas skipped searched "a\b": none`, "cublas skipped devices.json does not say whether there is a cuBLAS"}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("line %d is %q, want %q", i, got[i], want[i])
		}
	}
	if log, err := os.ReadFile(filepath.Join(out, "good.log")); err != nil || string(log) != "fine\n" {
		t.Errorf("a step's log is %q, %v", log, err)
	}
	if s, err := os.ReadFile(filepath.Join(out, "epoch-cora.json")); err != nil || !strings.Contains(string(s), "train --json --progress=none --out="+out+"/run-cora --mode=gpu") {
		t.Errorf("a training's summary is %q, %v", s, err)
	}
	if _, err := os.Stat(filepath.Join(out, "epoch-lost.json")); err == nil {
		t.Error("a training that failed has left a summary")
	}
}
