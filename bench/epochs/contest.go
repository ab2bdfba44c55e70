//go:build cgo && amd64 && linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dorylus/bench/load"
)

// The contestants. "same" is the engine doing the work that others do.
const (
	ours = "ours"
	same = "same"
	pyg  = "pyg"
	dgl  = "dgl"
)

var contestants = []string{ours, pyg, same, dgl}

// outcome is one process of a contestant.
type outcome struct {
	Epoch  float64 // seconds, the median
	First  float64 // seconds of the first epoch; 0: not known
	Whole  float64 // seconds of the process
	CPU    float64 // seconds of processors that it used
	Memory float64 // bytes at most; of a peer while it trains, without what only reading took
	Acc    float64
	Loss   float64

	Version, Note string
}

// lab is where contestants run.
type lab struct {
	engine, folder, reference string
	python                    map[string]string // by peer: the interpreter that has it
	threads                   int
	loads                     []load.Load
}

// say tells how far things are, on standard error.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench/epochs: "+format+"\n", args...) }

// process runs a program and returns its standard output and what it took.
func (l *lab) process(name string, args ...string) ([]byte, outcome, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	watch, start := load.Begin(), time.Now()
	err := cmd.Run()
	o := outcome{Whole: time.Since(start).Seconds()}
	if x, ok := watch.Since(cmd.ProcessState); ok {
		l.loads = append(l.loads, x)
	}
	if s := cmd.ProcessState; s != nil {
		o.CPU = (s.UserTime() + s.SystemTime()).Seconds()
		if ru, ok := s.SysUsage().(*syscall.Rusage); ok {
			o.Memory = float64(ru.Maxrss) * 1024
		}
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		err = fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, lines[len(lines)-1])
	}
	return out.Bytes(), o, err
}

// store prepares the graph of a work, once for all works of the same graph.
func (l *lab) store(w *work) (string, error) {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(":,=/", r) {
			return '-'
		}
		return r
	}, w.Data+w.Split)
	folder := filepath.Join(l.folder, name)
	if _, err := os.Stat(filepath.Join(folder, "meta.json")); err == nil {
		return folder, nil
	}
	say("prepare %s", w.Data)
	data := w.Data
	if path := filepath.Join(l.reference, "data", data); !w.synthetic() && data != "cora" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: the reference data is needed (-reference FOLDER): %w", w.Name, err)
		}
		data = path
	}
	args := []string{"prepare", data, "-o", folder}
	if w.Split != "" {
		args = append(args, "--split="+w.Split)
	}
	_, _, err := l.process(l.engine, args...)
	return folder, err
}

// run is one process of contestant c.
func (l *lab) run(c string, w *work, store string) (outcome, error) {
	switch c {
	case ours, same:
		return l.train(c, w, store)
	}
	return l.peer(c, w, store)
}

// train runs the engine; the folder that it leaves has the settings for the peers.
func (l *lab) train(c string, w *work, store string) (outcome, error) {
	run := l.settings(w)
	if err := os.RemoveAll(run); err != nil {
		return outcome{}, err
	}
	args := slices.Concat([]string{"train", "--data=" + store, "--out=" + run, "--json", "--progress=none", fmt.Sprintf("--threads=%d", l.threads)}, w.Flags)
	if w.Epochs > 0 {
		args = append(args, fmt.Sprintf("--epochs=%d", w.Epochs))
	}
	if c == same {
		args = append(args, "--cache-gather=false", "--prune-rows=false")
	}
	text, o, err := l.process(l.engine, args...)
	if err != nil {
		return o, err
	}
	var s struct {
		Epoch   float64 `json:"epoch_seconds"`
		Loss    float64 `json:"loss"`
		Acc     float64 `json:"test_acc"`
		Version string  `json:"version"`
	}
	err = json.Unmarshal(text, &s)
	o.Epoch, o.Loss, o.Acc, o.Version = s.Epoch, s.Loss, s.Acc, s.Version
	return o, err
}

func (l *lab) settings(w *work) string { return filepath.Join(l.folder, "run-"+w.Name) }

// errAbsent is what a peer that is not installed answers.
var errAbsent = errors.New("not installed")

// peer runs a trainer of bench/peers.
func (l *lab) peer(c string, w *work, store string) (outcome, error) {
	if l.python[c] == "" {
		return outcome{}, errAbsent
	}
	args := []string{"bench/peers/train_" + c + ".py", store, filepath.Join(l.settings(w), "config.yaml"), fmt.Sprintf("--threads=%d", l.threads)}
	if w.PeerEpochs > 0 {
		args = append(args, fmt.Sprintf("--epochs=%d", w.PeerEpochs))
	}
	text, o, err := l.process(l.python[c], args...)
	if err != nil {
		return o, err
	}
	var s struct {
		Epoch   float64 `json:"epoch_seconds"`
		First   float64 `json:"first_epoch_seconds"`
		Loss    float64 `json:"loss"`
		Acc     float64 `json:"test_acc"`
		Memory  float64 `json:"training_peak_memory_bytes"`
		Version string  `json:"version"`
		Note    string  `json:"note"`
	}
	err = json.Unmarshal(text, &s)
	o.Epoch, o.First, o.Loss, o.Acc, o.Memory, o.Version, o.Note = s.Epoch, s.First, s.Loss, s.Acc, s.Memory, s.Version, s.Note
	return o, err
}
