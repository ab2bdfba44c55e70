package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dorylus/engine"
	"dorylus/engine/cost"
)

// entry is one of the modes to compare, ready to be trained in.
type entry struct {
	engine.Config
	name   string // "cpu", "cpu:async"
	bill   *biller
	folder *runFolder
	notRun string // why the mode cannot be run here; "" if it can
}

// entries are the modes that f names, each with the settings of r, checked all at once.
func (a *app) entries(r *resolved, f compareFlags) ([]*entry, error) {
	entries, err := parseModes(r.Config, f.modes)
	if err != nil {
		return nil, err
	}
	types, err := a.parseAs(f.as, entries)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range entries {
		for _, key := range []string{e.Mode, e.name} { // the more exact one wins
			if t, ok := types[key]; ok {
				e.Instance = t
			}
		}
		for _, line := range problemErrors(e.Validate()) {
			if !slices.ContainsFunc(errs, func(err error) bool { return err.Error() == line.Error() }) {
				errs = append(errs, line)
			}
		}
	}
	if len(errs) > 0 {
		return nil, usage(errors.Join(errs...))
	}
	for _, e := range entries {
		if e.Mode == "gpu" && a.gpu == nil {
			if err := a.chooseGPUs(&e.Config); err != nil {
				e.notRun = strings.TrimPrefix(strings.Join(problems(err), "; "), "--mode=gpu: ")
				continue
			}
		}
		if e.bill, err = a.newBiller(&e.Config); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// problemErrors are the errors that err joins; none if it is nil.
func problemErrors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// parseModes reads --modes: modes, with ":" and a pipeline or without.
func parseModes(c engine.Config, list string) ([]*entry, error) {
	var entries []*entry
	async := false
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		e := &entry{Config: c, name: name}
		mode, pipe, given := strings.Cut(name, ":")
		if err := oneOf("--modes="+list, "mode", mode, engine.Modes); err != nil {
			return nil, err
		}
		e.Mode = mode
		if given {
			if err := oneOf("--modes="+list, "pipeline", pipe, engine.Pipelines); err != nil {
				return nil, err
			}
			e.Pipeline = pipe
		}
		if i := slices.IndexFunc(entries, func(x *entry) bool { return x.Mode == e.Mode && x.Pipeline == e.Pipeline }); i >= 0 {
			return nil, usagef("--modes=%s: %s would train as %s does; name each mode once", list, name, entries[i].name)
		}
		async = async || e.Pipeline == "async"
		if d := engine.DefaultConfig(c.Model); mode == "gpu" {
			e.Device = d.Device // it is meant for the others, as these are for GPUs
		} else {
			e.GPU, e.GPUMemory, e.Precision, e.GPUProducts = d.GPU, d.GPUMemory, d.Precision, d.GPUProducts
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		if async && e.Pipeline == "sync" {
			e.Staleness = 0 // it is meant for the others
		}
	}
	return entries, nil
}

// oneOf refuses a word that is none of those known.
func oneOf(where, what, word string, known []string) error {
	if slices.Contains(known, word) {
		return nil
	}
	if near := nearest(word, known); near != "" && word != "" {
		return usagef("%s: no %s %q; did you mean %s?", where, what, word, near)
	}
	return usagef("%s: no %s %q; choose from %s", where, what, word, list(known))
}

// parseAs reads --as: instance types by mode. A type of a mode that is not compared is
// checked and left out, which is said.
func (a *app) parseAs(text string, entries []*entry) (map[string]string, error) {
	types := map[string]string{}
	if text == "" {
		return types, nil
	}
	path, _ := a.pricesFile()
	table, err := cost.Load(path)
	if err != nil {
		return nil, err
	}
	known := slices.Clone(engine.Modes)
	for _, e := range entries {
		known = append(known, e.name)
	}
	for _, pair := range strings.Split(text, ",") {
		mode, name, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || name == "" {
			return nil, usagef("--as=%s: %q is no MODE=TYPE, such as cpu=c7i.2xlarge", text, pair)
		}
		if err := oneOf("--as="+text, "mode", mode, known); err != nil {
			return nil, err
		}
		if _, twice := types[mode]; twice {
			return nil, usagef("--as=%s: %s is there twice", text, mode)
		}
		if _, err := table.Price(cost.Servers{Graph: name, Graphs: 1}); err != nil {
			return nil, usagef("--as=%s=%s: %w", mode, name, err)
		}
		if !slices.ContainsFunc(entries, func(e *entry) bool { return e.Mode == mode || e.name == mode }) {
			a.note(false, "--as: %s is not compared, so %s is not used", mode, name)
		}
		types[mode] = name
	}
	return types, nil
}

// compareFolders are the folders of a comparison that is kept.
type compareFolders []*runFolder

// openCompareFolders makes a folder for each mode below top before any work is done; ""
// keeps nothing.
func openCompareFolders(top string, entries []*entry) (folders compareFolders, err error) {
	defer func() {
		if err != nil {
			folders.discard()
		}
	}()
	if top != "" && exists(filepath.Join(top, compareFile)) {
		return nil, fmt.Errorf("--out=%s holds a comparison already (%s); choose another folder", top, compareFile)
	}
	open := func(path string) (*runFolder, error) {
		f, err := openRunFolder(&engine.Config{OutDir: path})
		if err == nil {
			folders = append(folders, f)
		}
		return f, err
	}
	if _, err := open(top); err != nil {
		return folders, err
	}
	for _, e := range entries {
		if e.notRun != "" {
			continue
		}
		if top != "" {
			e.OutDir = filepath.Join(top, strings.ReplaceAll(e.name, ":", "-"))
		}
		if e.folder, err = open(e.OutDir); err != nil {
			return folders, err
		}
	}
	return folders, nil
}

// discard removes the folders that nothing has been written to.
func (f compareFolders) discard() {
	for _, folder := range slices.Backward(f) { // those within before the one around them
		folder.discard()
	}
}

// dryCompare says what a comparison would do.
func (a *app) dryCompare(ctx context.Context, r *resolved, entries []*entry) error {
	var modes []map[string]any
	var texts []string
	for _, e := range entries {
		if e.notRun != "" {
			modes = append(modes, map[string]any{"name": e.name, "mode": e.Mode, "pipeline": e.Pipeline, "not_run": e.notRun})
			texts = append(texts, fmt.Sprintf("%s (would not be run: %s)", e.name, e.notRun))
			continue
		}
		instance := "nothing"
		if r := e.bill.rates; r != nil {
			instance = r.Graph[0].Type
		}
		modes = append(modes, map[string]any{"name": e.name, "mode": e.Mode, "pipeline": e.Pipeline, "instance": instance})
		texts = append(texts, fmt.Sprintf("%s (priced as %s)", e.name, instance))
	}
	if !r.JSON {
		err := a.dryRun(ctx, r)
		if err == nil {
			_, err = fmt.Fprintln(a.out, "One after the other in these modes:", list(texts))
		}
		return err
	}
	st, err := a.loadData(ctx, &r.Config, true)
	if err != nil {
		return err
	}
	defer st.Close()
	if _, err := splitOf(st, &r.Config, 0); err != nil {
		return err
	}
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"dry_run": true, "config": r.values(), "dataset": st.Meta.Name, "vertices": st.Meta.Vertices, "edges": st.Meta.Edges, "modes": modes})
}
