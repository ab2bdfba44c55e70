package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// redditSized is a planted graph with the vertices, edges, features and classes of Reddit.
const redditSized = "synth:sbm,vertices=233000,degree=245,classes=41,features=602,seed=1"

func main() {
	var l lab
	data := flag.String("data", redditSized, "`GRAPH` of the measurements: a prepared store, or synth:..., which is prepared first")
	flag.StringVar(&l.engine, "engine", "bin/dorylus-engine", "the `FILE` to run; its worker lies beside it")
	flag.StringVar(&l.reference, "reference", "../shared", "`FOLDER` of the reference data, for compare")
	flag.IntVar(&l.epochs, "epochs", 4, "epochs of each run, 2 or more; the first one is not counted")
	flag.IntVar(&l.workers, "workers", 4, "Lambda workers")
	flag.IntVar(&l.intervals, "intervals", 16, "intervals of the runs that have several")
	flag.DurationVar(&l.latency, "latency", 60*time.Millisecond, "latency that is injected into each task")
	out := flag.String("out", "", "write the results as JSON to this `file`")
	flag.Parse()
	if l.epochs < 2 || l.workers < 1 || l.intervals < 2 || l.latency <= 0 || flag.NArg() > 0 {
		fail(fmt.Errorf("want 2 epochs, 1 worker, 2 intervals, some latency at least, and no arguments; got %d, %d, %d, %v and %q", l.epochs, l.workers, l.intervals, l.latency, flag.Args()))
	}
	r, err := measure(&l, *data)
	if err != nil {
		fail(err)
	}
	r.print(os.Stdout)
	if *out != "" {
		if err := r.save(*out); err != nil {
			fail(err)
		}
	}
	if n := r.missed(); n > 0 {
		fail(fmt.Errorf("%d of %d goals missed", n, len(r.Goals)))
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "bench/lambda: %v\n", err)
	os.Exit(1)
}

// measure does all measurements, in a folder that is gone afterwards.
func measure(l *lab, data string) (_ *report, err error) {
	start := time.Now()
	if l.folder, err = os.MkdirTemp("", "bench-lambda-"); err != nil {
		return nil, fmt.Errorf("make a folder for the runs: %w", err)
	}
	defer os.RemoveAll(l.folder)
	r := &report{Made: start.UTC().Format(time.DateOnly), Workers: l.workers}
	if r.Machine, err = l.machine(); err != nil {
		return nil, err
	}
	if err := l.prepare(data); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name string
		run  func(*lab) error
	}{
		{"overlap", r.overlap}, {"traffic", r.traffic}, {"bits", r.bits}, {"autotuner", r.tuner}, {"compare", r.compare},
	} {
		if err := part.run(l); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		l.say("%s done", part.name)
	}
	r.Seconds = time.Since(start).Seconds()
	r.Machine.Finish(l.loads)
	return r, nil
}

// save writes the report as JSON.
func (r *report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
