package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// redditSized is a planted graph with the vertices, edges, features and classes of Reddit.
const redditSized = "synth:sbm,vertices=233000,degree=245,classes=41,features=602,seed=1"

// A part of the measurements.
type part struct {
	name string
	run  func(*report, *lab) error
}

var parts = []part{{"bits", (*report).bits}, {"scale", (*report).scale}, {"async", (*report).async}}

func main() {
	var l lab
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	flag.StringVar(&l.data, "data", redditSized, "`GRAPH` of the scaling table: a prepared store, or synth:..., which is prepared first")
	flag.StringVar(&l.engine, "engine", "bin/dorylus-engine", "the `FILE` to run; its worker lies beside it")
	flag.StringVar(&l.reference, "reference", "../shared", "`FOLDER` of the reference data")
	flag.IntVar(&l.seeds, "seeds", 2, "seeds of the asynchronous runs")
	flag.IntVar(&l.epochs, "epochs", 2, "epochs of the scaling table, 2 or more")
	list := flag.String("parts", strings.Join(names, ","), "`LIST` of what to measure")
	out := flag.String("out", "", "write the results as JSON to this `file`")
	flag.Parse()
	chosen := strings.Split(*list, ",")
	for _, c := range chosen {
		if !slices.Contains(names, c) {
			fail(fmt.Errorf("-parts has %q; there are %s", c, strings.Join(names, ", ")))
		}
	}
	if l.seeds < 1 || l.epochs < 2 || flag.NArg() > 0 {
		fail(fmt.Errorf("want 1 seed and 2 epochs at least, and no arguments; got %d, %d and %q", l.seeds, l.epochs, flag.Args()))
	}
	r, err := measure(&l, chosen)
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
	fmt.Fprintf(os.Stderr, "bench/cluster: %v\n", err)
	os.Exit(1)
}

// measure does the chosen measurements, in a folder that is gone afterwards.
func measure(l *lab, chosen []string) (_ *report, err error) {
	start := time.Now()
	if l.folder, err = os.MkdirTemp("", "bench-cluster-"); err != nil {
		return nil, fmt.Errorf("make a folder for the runs: %w", err)
	}
	defer os.RemoveAll(l.folder)
	r := &report{Made: start.UTC().Format(time.DateOnly)}
	if r.Machine, err = l.machine(); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if !slices.Contains(chosen, p.name) {
			r.Skipped = append(r.Skipped, p.name+": not chosen")
			continue
		}
		if err := p.run(r, l); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		l.say("%s done after %.0f s", p.name, time.Since(start).Seconds())
	}
	r.Seconds = time.Since(start).Seconds()
	r.Version, r.Again = l.version, l.again
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
