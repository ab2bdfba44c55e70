//go:build cgo && amd64 && linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dorylus/bench/load"
	"dorylus/engine"
)

func main() {
	l := lab{python: map[string]string{}}
	cache, _ := os.UserCacheDir()
	which := flag.String("works", "", "`NAMES` of what is trained, comma-separated, of "+names()+"; none: all")
	who := flag.String("contestants", strings.Join(contestants, ","), "`WHO` takes part: ours (the engine), same (doing the work of others), pyg, dgl")
	rounds := flag.Int("rounds", 3, "how often each contestant runs, in turn")
	out := flag.String("out", "", "write the results as JSON to this `file`")
	edges := flag.Float64("edges", 1, "`SHARE` of the edges that made graphs have, for a quick look")
	peers := flag.String("peers", filepath.Join(cache, "dorylus-peers"), "`FOLDER` of PyG's Python environment; DGL's has -dgl behind it (bench/peers/setup.sh)")
	flag.StringVar(&l.engine, "engine", "bin/dorylus-engine", "the `FILE` to run")
	flag.StringVar(&l.reference, "reference", "../shared", "`FOLDER` of the reference data")
	flag.StringVar(&l.folder, "stores", filepath.Join(cache, "dorylus-bench"), "`FOLDER` where prepared graphs are kept")
	flag.IntVar(&l.threads, "threads", runtime.NumCPU(), "threads of every contestant")
	flag.Parse()
	chosen, unknown := pick(*which)
	if len(unknown) > 0 || *rounds < 1 || l.threads < 1 || *edges <= 0 || flag.NArg() > 0 {
		fail(fmt.Errorf("want -works of %s, 1 round, 1 thread, some edges at least, and no arguments; got %q, %d, %d, %g and %q", names(), unknown, *rounds, l.threads, *edges, flag.Args()))
	}
	takePart := strings.Split(*who, ",")
	for _, c := range takePart {
		if !slices.Contains(contestants, c) {
			fail(fmt.Errorf("-contestants=%s: %q is none; choose of %s", *who, c, strings.Join(contestants, ", ")))
		}
	}
	for peer, folder := range map[string]string{pyg: *peers, dgl: *peers + "-dgl"} {
		if python := filepath.Join(folder, "bin", "python"); exists(python) {
			l.python[peer] = python
		}
	}
	r, err := measure(&l, chosen, takePart, *rounds, *edges)
	if err != nil {
		fail(err)
	}
	r.print(os.Stdout)
	if *out != "" {
		if err := r.save(*out); err != nil {
			fail(err)
		}
	}
	if missed, all := r.missed(); missed > 0 {
		fail(fmt.Errorf("%d of %d goals missed", missed, all))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "bench/epochs: %v\n", err)
	os.Exit(1)
}

func measure(l *lab, chosen []work, who []string, rounds int, edges float64) (*report, error) {
	start := time.Now()
	r := &report{Made: start.UTC().Format(time.DateOnly), Threads: l.threads, Rounds: rounds, Versions: map[string]string{}, Absent: map[string]string{}}
	text, _, err := l.process(l.engine, "devices", "--json")
	if err != nil {
		return nil, err
	}
	if r.Machine, err = load.Describe(text); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.folder, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder for prepared graphs: %w", err)
	}
	if r.Ceilings, err = newCeilings(l.threads); err != nil {
		return nil, err
	}
	for _, peer := range []string{pyg, dgl} {
		if slices.Contains(who, peer) && l.python[peer] == "" {
			r.Absent[peer] = "no Python environment has it: run bench/peers/setup.sh"
			say("%s: %s", peer, r.Absent[peer])
		}
	}
	for i := range chosen {
		w := chosen[i].scaled(edges)
		x, err := r.contest(l, &w, who, rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
		r.Works = append(r.Works, x)
	}
	r.Seconds = time.Since(start).Seconds()
	r.Machine.Finish(l.loads)
	return r, nil
}

// contest lets all contestants do a work in turn.
func (r *report) contest(l *lab, w *work, who []string, rounds int) (*result, error) {
	store, err := l.store(w)
	if err != nil {
		return nil, err
	}
	x := &result{Work: w.Name, Data: w.Data, Flags: strings.Join(w.Flags, " "), Whole: w.Whole, By: map[string]*row{}, Failed: map[string]string{}}
	all := map[string][]outcome{}
	for round := range rounds {
		for _, c := range contestants {
			if !slices.Contains(who, c) && c != ours || x.Failed[c] != "" {
				continue
			}
			o, err := l.run(c, w, store)
			switch {
			case errors.Is(err, errAbsent):
				continue
			case err != nil && (c == ours || c == same):
				return nil, err
			case err != nil:
				x.Failed[c] = err.Error()
				say("%s, %s: %v", w.Name, c, err)
				continue
			}
			say("%s, round %d of %d, %s: %s s an epoch, %s s in all, %.0f MB", w.Name, round+1, rounds, c, short(o.Epoch), short(o.Whole), o.Memory/1e6)
			all[c] = append(all[c], o)
			r.Versions[c] = cmp.Or(r.Versions[c], o.Version)
		}
	}
	for _, c := range slices.Sorted(maps.Keys(all)) {
		x.add(c, all[c])
	}
	for _, c := range []string{ours, same} {
		if x.By[c] == nil {
			continue
		}
		f, err := r.Ceilings.floorOf(context.Background(), w.config(l.threads, c == same), store)
		if err != nil {
			return nil, fmt.Errorf("count the work of an epoch: %w", err)
		}
		share := f.sum() / x.By[c].Epoch.Median
		x.By[c].Floor, x.By[c].Share = &f, &share
	}
	x.judge(w, all)
	return x, nil
}

// config is the engine's for a work.
func (w *work) config(threads int, sameWork bool) *engine.Config {
	values := map[string]string{}
	for _, f := range w.Flags {
		name, text, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		values[name] = text
	}
	c := engine.DefaultConfig(values["model"])
	for _, s := range c.Settings() {
		if text, ok := values[s.Name]; ok {
			if err := s.Set(text); err != nil {
				panic(err) // of our own table
			}
		}
	}
	c.Threads = threads
	if sameWork {
		c.CacheGather, c.PruneRows = false, false
	}
	return &c
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
