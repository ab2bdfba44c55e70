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
)

// lab is where gates are run: the engine, and the folders of graphs and splits.
type lab struct {
	engine, data, splits string
}

// outcome is what the runs of a gate scored on their test vertices, in per cent.
type outcome struct {
	best, last []float64 // by run: after the epoch best in validation, after the last
	version    string    // of the engine
	device     string
	threads    int
}

// missing is the first of a gate's files that the lab lacks; "": it has all.
func (l lab) missing(g gate) string {
	for _, f := range []struct{ folder, name string }{{l.data, g.data}, {l.splits, g.splits}} {
		if f.name == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(f.folder, f.name)); err != nil {
			return f.name
		}
	}
	return ""
}

// train runs a gate's seeds in one process of the engine.
func (l lab) train(g gate) (outcome, error) {
	var source, splits []string
	if g.data != "" {
		source = []string{"--data=" + filepath.Join(l.data, g.data)}
	}
	if g.splits != "" {
		splits = []string{"--split-file=" + filepath.Join(l.splits, g.splits)}
	}
	if g.prepare != nil {
		dir, err := os.MkdirTemp("", "accuracy-")
		if err != nil {
			return outcome{}, fmt.Errorf("make a folder for the store: %w", err)
		}
		defer os.RemoveAll(dir)
		store := filepath.Join(dir, "store")
		if _, _, err := l.call(slices.Concat([]string{"prepare", filepath.Join(l.data, g.data), "--out=" + store}, splits, g.prepare)); err != nil {
			return outcome{}, err
		}
		source, splits = []string{"--data=" + store}, nil
	}
	args := []string{"train", "--json", "--progress=json", fmt.Sprintf("--runs=%d", g.runs), "--metric=" + g.metric}
	stdout, stderr, err := l.call(slices.Concat(args, source, splits, g.flags))
	if err != nil {
		return outcome{}, err
	}
	return parse(g, stdout, stderr)
}

// call runs the engine.
func (l lab) call(args []string) (stdout, stderr []byte, err error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(l.engine, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		tail := bytes.TrimSpace(errs.Bytes())
		tail = tail[bytes.LastIndexByte(tail, '\n')+1:]
		return nil, nil, fmt.Errorf("%s: %w: %s", args[0], err, tail)
	}
	return out.Bytes(), errs.Bytes(), nil
}

// summary is the part of the engine's --json that is looked at.
type summary struct {
	Metric     string    `json:"metric"`
	TestAcc    *float64  `json:"test_acc"`
	TestMetric *float64  `json:"test_metric"`
	Version    string    `json:"version"`
	Device     string    `json:"device"`
	Threads    int       `json:"threads"`
	Runs       []summary `json:"runs"`
}

// epoch is the part of a line of --progress=json that is looked at.
type epoch struct {
	Epoch      int      `json:"epoch"`
	Epochs     int      `json:"epochs"`
	TestAcc    *float64 `json:"test_acc"`
	TestMetric *float64 `json:"test_metric"`
}

// parse takes the scores out of the engine's summary, and out of its progress those
// of each run's last epoch.
func parse(g gate, stdout, stderr []byte) (outcome, error) {
	var s summary
	if err := json.Unmarshal(stdout, &s); err != nil {
		return outcome{}, fmt.Errorf("read the engine's summary: %w", err)
	}
	o := outcome{version: s.Version, device: s.Device, threads: s.Threads}
	runs := s.Runs
	if len(runs) == 0 {
		runs = []summary{s}
	}
	for i, r := range runs {
		if r.Metric != g.metric {
			return outcome{}, fmt.Errorf("run %d measured %s, not %s", i, r.Metric, g.metric)
		}
		score, err := percent(g.metric, r.TestAcc, r.TestMetric)
		if err != nil {
			return outcome{}, fmt.Errorf("run %d: %w", i, err)
		}
		o.best = append(o.best, score)
	}
	for _, line := range bytes.Split(stderr, []byte("\n")) {
		var e epoch
		if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil || e.Epoch == 0 || e.Epoch != e.Epochs {
			continue
		}
		score, err := percent(g.metric, e.TestAcc, e.TestMetric)
		if err != nil {
			return outcome{}, fmt.Errorf("last epoch of run %d: %w", len(o.last), err)
		}
		o.last = append(o.last, score)
	}
	if len(o.best) != g.runs || len(o.last) != g.runs {
		return outcome{}, fmt.Errorf("the summary has %d runs and the progress %d last epochs, but %d were asked for", len(o.best), len(o.last), g.runs)
	}
	return o, nil
}

// percent is 100 times the value that metric has, to four digits after the point: the
// accuracy has a place of its own.
func percent(metric string, accuracy, other *float64) (float64, error) {
	if metric != "accuracy" {
		accuracy = other
	}
	if accuracy == nil {
		return 0, errors.New("no " + metric + " of test vertices was measured")
	}
	return round(100 * *accuracy), nil
}
