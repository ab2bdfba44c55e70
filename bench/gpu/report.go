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

// peers is what bench/gpu/peers.py writes.
type peers struct {
	Device  string   `json:"device"`
	Torch   string   `json:"torch"`
	PyG     string   `json:"pyg"`
	Missing []string `json:"missing"` // what could not be measured, and why
	SpMM    []struct {
		Width    int     `json:"width"`
		CuSPARSE float64 `json:"cusparse_ms"` // ALG2, preprocessed; 0: not measured
		Torch    float64 `json:"torch_ms"`
		Error    float64 `json:"error"`
	} `json:"spmm"`
	Epochs []struct {
		Name string  `json:"name"`
		MS   float64 `json:"ms"`
	} `json:"epochs"`
}

// beside is our gather and theirs of a width, in milliseconds.
type beside struct {
	Width        int     `json:"width"`
	Ours         float64 `json:"ours_ms"`
	CuSPARSE     float64 `json:"cusparse_ms,omitempty"`
	Torch        float64 `json:"torch_ms,omitempty"`
	OverCuSPARSE float64 `json:"times_cusparse,omitempty"` // how many times as fast as cuSPARSE
}

// epoch is a training of ours: a file epoch-NAME.json, which is the engine's summary.
type epoch struct {
	Name     string  `json:"name"`
	MS       float64 `json:"ms,omitempty"` // median of an epoch; 0 on an emulated device
	TestAcc  float64 `json:"test_acc"`
	Loss     float64 `json:"loss"`
	Vertices int     `json:"vertices"`
	Edges    int64   `json:"edges"`
	Device   string  `json:"device"`
	Weights  string  `json:"weights_sha256"`
}

// goal is a number of the plan. Met is null where it was not judged; why says so.
type goal struct {
	What  string  `json:"what"`
	Value float64 `json:"value,omitempty"`
	Goal  string  `json:"goal"`
	Met   *bool   `json:"met"`
	Why   string  `json:"why,omitempty"`
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
		} `json:"cuda"`
	}
	if get("devices.json", &r.Devices) && json.Unmarshal(r.Devices, &asked) == nil {
		r.Emulated = r.Emulated || asked.CUDA.Emulated
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
	r.judge()
	return r, nil
}

// compare puts gathers beside those of the peers.
func (r *result) compare() {
	if r.Kernels == nil || r.Emulated {
		return
	}
	for _, g := range r.Kernels.Gathers {
		if g.Op != "spmm" || g.Times == nil {
			continue
		}
		b := beside{Width: g.Width, Ours: g.Median}
		if r.Peers != nil {
			for _, p := range r.Peers.SpMM {
				if p.Width == g.Width {
					b.CuSPARSE, b.Torch = p.CuSPARSE, p.Torch
				}
			}
		}
		if b.CuSPARSE > 0 {
			b.OverCuSPARSE = b.CuSPARSE / b.Ours
		}
		r.Beside = append(r.Beside, b)
	}
}

// reddit is as large as the graph for which the goal of an epoch is set.
func (e epoch) reddit() bool { return e.Vertices >= 230_000 && e.Edges >= 110_000_000 }

// cached is the epoch that goals are about: a GCN of width 128, fp32, synchronous.
const cached = "gcn-fp32-sync"

func (r *result) judge() {
	least := func(what string, value, least float64, text string) {
		met := value >= least
		r.Goals = append(r.Goals, goal{What: what, Value: value, Goal: text, Met: &met})
	}
	open := func(what, text, why string) {
		r.Goals = append(r.Goals, goal{What: what, Goal: text, Why: why})
	}
	const spmm, over = "SpMM, times as fast as cuSPARSE ALG2 (preprocessed)", "Reddit-sized GCN epoch, times as fast as PyG"
	const span = "Reddit-sized GCN epoch, ms"
	if r.Emulated {
		open(spmm, ">= 1", "emulated device")
		open(span, "<= 17", "emulated device")
		open(over, ">= 3", "emulated device")
		return
	}
	for _, b := range r.Beside {
		if b.CuSPARSE > 0 {
			least(fmt.Sprintf("%s, width %d", spmm, b.Width), b.OverCuSPARSE, 1, ">= 1")
		} else {
			open(fmt.Sprintf("%s, width %d", spmm, b.Width), ">= 1", "cuSPARSE was not measured")
		}
	}
	if len(r.Beside) == 0 {
		open(spmm, ">= 1", "no gathers were measured")
	}
	ours := 0.0
	for _, e := range r.Epochs {
		if e.Name == cached && e.reddit() {
			ours = e.MS
		}
	}
	switch {
	case ours == 0:
		open(span, "<= 17", "no epoch of a graph of that size was measured")
		open(over, ">= 3", "no epoch of a graph of that size was measured")
		return
	case !strings.Contains(r.Device, "H200"):
		open(fmt.Sprintf("%s: %.2f", span, ours), "<= 17 on an H200", "another GPU: "+r.Device)
	default:
		met := ours <= 17
		r.Goals = append(r.Goals, goal{What: span, Value: ours, Goal: "<= 17", Met: &met})
	}
	best := 0.0
	if r.Peers != nil {
		for _, p := range r.Peers.Epochs { // against the fastest of PyG's forms
			if p.MS > 0 && (best == 0 || p.MS < best) {
				best = p.MS
			}
		}
	}
	if best == 0 {
		open(over, ">= 3", "PyG was not measured")
		return
	}
	least(over, best/ours, 3, ">= 3")
}
