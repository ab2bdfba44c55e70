package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// result is bench/results/gpu-NAME.json: what the steps of a run have left.
type result struct {
	Note     string          `json:"note"`
	Device   string          `json:"device"`
	Emulated bool            `json:"emulated"`
	Steps    []step          `json:"steps"`
	Kernels  *measured       `json:"kernels,omitempty"`
	Peers    *peers          `json:"peers,omitempty"`
	Beside   []beside        `json:"gathers_beside_peers,omitempty"`
	Others   []other         `json:"ops_beside_peers,omitempty"`
	Forms    []form          `json:"epochs_of_gathers,omitempty"`
	Epochs   []epoch         `json:"epochs,omitempty"`
	Goals    []goal          `json:"goals,omitempty"`
	Devices  json.RawMessage `json:"devices,omitempty"` // devices --json
}

// step is a line of steps.jsonl: a process of its own, with its log.
type step struct {
	Step    string  `json:"step"`
	Status  string  `json:"status"` // ok, failed, timeout, skipped
	Seconds float64 `json:"seconds"`
	Why     string  `json:"why,omitempty"`
}

// epoch is a training of ours: a file epoch-NAME.json, which is the engine's summary.
type epoch struct {
	Name     string  `json:"name"`
	MS       float64 `json:"ms,omitempty"` // median of an epoch; 0 on an emulated device
	Epochs   int     `json:"epochs_run"`
	Products string  `json:"gpu_products"` // "own", "cublas 12.8.4"
	// Precision is that of products and gathers: fp32, tf32 or bf16.
	Precision string  `json:"precision"`
	TestAcc   float64 `json:"test_acc"`
	Loss      float64 `json:"loss"`
	Vertices  int     `json:"vertices"`
	Edges     int64   `json:"edges"`
	Device    string  `json:"device"`
	Weights   string  `json:"weights_sha256"`
}

func reportCommand(args []string) error {
	fs := flag.NewFlagSet("report", flag.ExitOnError)
	dir := fs.String("dir", ".", "folder that the steps have written into")
	out := fs.String("out", "result.json", "file to write")
	if err := fs.Parse(args); err != nil {
		return err
	}
	r, err := collect(*dir)
	if err != nil {
		return fmt.Errorf("report on %s: %w", *dir, err)
	}
	return write(*out, r)
}

// load reads a JSON file into v, and says whether it is there.
func load(path string, v any) (bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return true, nil
}

// collect reads what is there; a step that failed has left nothing.
func collect(dir string) (*result, error) {
	r := &result{Note: "GPU run of bench/gpu.sh or gpu_first.sh. Times are medians between events on the device."}
	lines, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	if err != nil {
		return nil, err
	}
	for in := bufio.NewScanner(bytes.NewReader(lines)); in.Scan(); {
		var s step
		if err := json.Unmarshal(in.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("read steps.jsonl, %q: %w", in.Text(), err)
		}
		r.Steps = append(r.Steps, s)
	}
	var errs []error
	get := func(name string, v any) bool {
		ok, err := load(filepath.Join(dir, name), v)
		errs = append(errs, err)
		return ok
	}
	var m measured
	if get("kernels.json", &m) {
		r.Kernels, r.Device, r.Emulated = &m, m.Device, m.Emulated
	}
	var p peers
	if get("peers.json", &p) {
		r.Peers = &p
	}
	var asked struct {
		CUDA struct {
			Emulated bool `json:"emulated"`
			Devices  []struct {
				Model  string `json:"model"`
				Usable bool   `json:"usable"`
			} `json:"devices"`
		} `json:"cuda"`
	}
	if get("devices.json", &r.Devices) && json.Unmarshal(r.Devices, &asked) == nil {
		r.Emulated = r.Emulated || asked.CUDA.Emulated
		for _, d := range asked.CUDA.Devices {
			if r.Device == "" && d.Usable { // the kernels were not measured
				r.Device = d.Model
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "epoch-*.json"))
	errs = append(errs, err)
	for _, f := range files {
		var s struct {
			epoch
			Seconds float64 `json:"epoch_seconds"`
		}
		ok, err := load(f, &s)
		errs = append(errs, err)
		if ok {
			s.Name = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "epoch-"), ".json")
			if s.MS = s.Seconds * 1000; r.Emulated {
				s.MS = 0
			}
			r.Epochs = append(r.Epochs, s.epoch)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if r.Emulated {
		r.Note = "EMULATED device, no GPU: it shows that the steps run, and has no times; no goal is judged."
	}
	r.compare()
	r.compareOthers()
	r.addForms()
	r.judge()
	return r, nil
}
