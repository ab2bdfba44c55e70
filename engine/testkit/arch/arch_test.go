package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/engine/testkit"
)

// TestTree holds the project to its dependency rule.
func TestTree(t *testing.T) {
	root := testkit.Root(t)
	found, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
	files, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	var own bool
	for _, f := range files {
		own = own || f.name == "engine/testkit/arch/arch_test.go"
	}
	if len(files) < 20 || !own {
		t.Errorf("read %d files below %s (this one among them: %v): the walk misses the tree", len(files), root, own)
	}
}

// TestPlanted proves that the check can fail: each tree holds one file that
// breaks the rule, or none.
func TestPlanted(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string // part of the only report; empty: none
	}{
		{"clean", map[string]string{
			"engine/ops/a.go":        "package ops\nimport (\n\"time\"\n\"dorylus/kernels\"\n)",
			"engine/ops/a_test.go":   "package ops\nimport \"dorylus/kernels/ref\"",
			"kernels/cpu/a.go":       "package cpu\nimport \"dorylus/csrc/cpu\"",
			"csrc/cpu/bind.go":       "package cpu\nimport \"C\"",
			"cluster/ghost/a.go":     "package ghost\nimport \"dorylus/lambda/codec\"",
			"engine/sched/a.go":      "package sched\nimport (\n\"slices\"\n\"dorylus/engine/task\"\n)",
			"engine/sched/a_test.go": "package sched\nimport (\n\"os\"\n\"dorylus/engine/testkit/dd\"\n)",
			"engine/testdata/a.go":   "package x\nimport \"dorylus/lambda\"",
			"bench/x/go.mod":         "module other",
			"bench/x/a.go":           "package x\nimport \"dorylus/cmd/dorylus-engine\"",
			"kernels/check_test.go":  "package kernels_test\nimport \"dorylus/kernels\"",
			"kernels/cuda/cu.go":     "//go:build cuda && cgo\n\npackage cuda\nimport \"gorgonia.org/cu\"",
		}, ""},
		{"upwards", map[string]string{"kernels/ref/a.go": "package ref\n\nimport \"dorylus/engine\""},
			"kernels/ref/a.go:3: imports dorylus/engine: kernels may import, of ours, kernels/..."},
		{"behind a tag", map[string]string{"engine/ops/a_windows.go": "//go:build never\n\npackage ops\n\nimport \"dorylus/lambda/fleet\""},
			"engine/ops/a_windows.go:5: imports dorylus/lambda/fleet"},
		{"sideways", map[string]string{"cluster/rpc/a.go": "package rpc\nimport \"dorylus/lambda/wire\""}, "imports dorylus/lambda/wire: cluster may import"},
		{"pipeline from lambda", map[string]string{"lambda/fleet/a.go": "package fleet\nimport \"dorylus/engine/pipeline\""}, "except engine/pipeline"},
		{"device from engine", map[string]string{"engine/backend/a.go": "package backend\nimport \"dorylus/kernels/devices\""}, "engine may import, of ours, engine/..., kernels, kernels/tensorbridge"},
		{"native code from a device", map[string]string{"kernels/ref/a.go": "package ref\nimport \"dorylus/csrc/blas\""}, "imports dorylus/csrc/blas"},
		{"sub-package from the root", map[string]string{"kernels/a.go": "package kernels\nimport \"dorylus/kernels/ref\""}, "the root of kernels imports no package of ours"},
		{"grpc", map[string]string{"engine/params/a.go": "package params\nimport \"google.golang.org/grpc/codes\""}, "gRPC stays in"},
		{"aws", map[string]string{"engine/store/a.go": "package store\nimport \"github.com/aws/aws-sdk-go-v2/service/s3\""}, "AWS stays in"},
		{"clock", map[string]string{"engine/sched/a.go": "package sched\nimport \"time\""}, "engine/sched/a.go:2: imports time: the scheduler has no clock"},
		{"dice", map[string]string{"engine/sched/a.go": "package sched\nimport \"math/rand/v2\""}, "same inputs, same tasks"},
		{"atomics", map[string]string{"engine/sched/a.go": "package sched\nimport \"sync/atomic\""}, "no lock"},
		{"clock behind a package", map[string]string{
			"engine/sched/a.go": "package sched\nimport \"dorylus/engine/task\"",
			"engine/task/a.go":  "package task\nimport \"time\"",
		}, "engine/task/a.go:2: imports time: the scheduler has no clock (engine/sched → engine/task)"},
		{"engine from sched", map[string]string{"engine/sched/a.go": "package sched\nimport \"dorylus/engine/graph\""}, "engine/sched may import, of ours, engine/task"},
		{"cgo", map[string]string{"kernels/cpu/a.go": "package cpu\nimport \"C\""}, "cgo lives in csrc/*/bind.go only"},
		{"cgo beside bind.go", map[string]string{"csrc/cpu/other.go": "package cpu\nimport \"C\""}, "csrc/cpu/other.go:2: imports C"},
		{"module in csrc", map[string]string{"csrc/cpu/bind.go": "package cpu\nimport \"golang.org/x/sys/cpu\""}, "standard library only"},
		{"cu without its tag", map[string]string{"kernels/cuda/a.go": "//go:build !cuda\n\npackage cuda\nimport \"gorgonia.org/cu\""}, "only files with //go:build cuda"},
		{"heavy worker", map[string]string{
			"cmd/dorylus-lambda/main.go": "package main\nimport \"dorylus/lambda/worker\"",
			"lambda/worker/a.go":         "package worker\nimport \"dorylus/engine/dataset\"",
		}, "the worker reads no data sets (cmd/dorylus-lambda → lambda/worker)"},
		{"new folder", map[string]string{"utils/a.go": "package utils"}, "utils/a.go: no rule for this folder"},
		{"top folder", map[string]string{"main.go": "package main"}, "main.go: no rule for this folder"},
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				p := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			found, err := Check(root)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case test.want == "" && len(found) > 0:
				t.Errorf("reports %q, want nothing", found)
			case test.want != "" && (len(found) != 1 || !strings.Contains(found[0], test.want)):
				t.Errorf("reports %q, want one that says %q", found, test.want)
			}
		})
	}
}
