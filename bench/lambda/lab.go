package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dorylus/bench/load"
)

// lab is where runs are made, and with what.
type lab struct {
	engine, reference string
	folder            string // of the runs
	store             string // the prepared graph
	epochs, workers   int
	intervals         int
	latency           time.Duration

	runs  map[string]*run // by flags: a run that two measurements need is made once
	loads []load.Load
}

// run is one training and what it has left behind.
type run struct {
	folder  string
	summary summary
}

// summary is the part of summary.json that is looked at.
type summary struct {
	Mode         string             `json:"mode"`
	Dataset      string             `json:"dataset"`
	Vertices     int                `json:"vertices"`
	Edges        int64              `json:"edges"`
	Loss         float64            `json:"loss"`
	TestAcc      float64            `json:"test_acc"`
	EpochSeconds float64            `json:"epoch_seconds"`
	Intervals    int                `json:"intervals"`
	Threads      int                `json:"threads"`
	Device       string             `json:"device"`
	Version      string             `json:"version"`
	Weights      string             `json:"weights_sha256"`
	Moved        int64              `json:"bytes_moved"`
	Wire         map[string]int64   `json:"wire"`
	Cost         map[string]float64 `json:"cost_usd"`
}

// say tells how far things are, on standard error.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench/lambda: "+format+"\n", args...)
}

// call runs the engine and returns its standard output.
func (l *lab) call(args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(l.engine, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	watch := load.Begin()
	err := cmd.Run()
	if x, ok := watch.Since(cmd.ProcessState); ok {
		l.loads = append(l.loads, x)
	}
	if err != nil {
		tail := bytes.TrimSpace(errs.Bytes())
		return nil, fmt.Errorf("%s %s: %w: %s", l.engine, strings.Join(args, " "), err, tail[bytes.LastIndexByte(tail, '\n')+1:])
	}
	return out.Bytes(), nil
}

// prepare makes a store of a generated graph; any other is taken as it is.
func (l *lab) prepare(data string) error {
	l.store = data
	if !strings.HasPrefix(data, "synth:") {
		return nil
	}
	l.say("prepare %s", data)
	l.store = filepath.Join(l.folder, "store")
	_, err := l.call("prepare", data, "--split=random:66/10/24", "--out="+l.store)
	return err
}

// workerMB is the memory of a worker: half of the graph's features have to fit in.
const workerMB = 3008

// train runs a graph convolutional network of hidden width 128 on the graph for some
// epochs, evaluated once, at the end.
func (l *lab) train(epochs int, flags ...string) (*run, error) {
	flags = append([]string{fmt.Sprintf("--epochs=%d", epochs)}, flags...)
	key := strings.Join(flags, " ")
	if r := l.runs[key]; r != nil {
		return r, nil
	}
	l.say("train %s", key)
	r := &run{folder: filepath.Join(l.folder, fmt.Sprintf("run-%d", len(l.runs)))}
	out, err := l.call(slices.Concat([]string{
		"train", "--data=" + l.store, "--model=gcn", "--hidden=128", "--eval-every=1000000", "--progress=none", "--json", "--out=" + r.folder,
	}, flags)...)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &r.summary); err != nil {
		return nil, fmt.Errorf("read the summary of %s: %w", key, err)
	}
	if l.runs == nil {
		l.runs = map[string]*run{}
	}
	l.runs[key] = r
	return r, nil
}

// onWorkers are the flags of a run whose tensor tasks go to workers.
func (l *lab) onWorkers() []string {
	return []string{"--mode=lambda", fmt.Sprintf("--lambdas=%d", l.workers), fmt.Sprintf("--lambda-memory=%d", workerMB)}
}

// machine describes the processor that the engine takes by default.
func (l *lab) machine() (load.Machine, error) {
	text, err := l.call("devices", "--json")
	if err != nil {
		return load.Machine{}, err
	}
	return load.Describe(text)
}
