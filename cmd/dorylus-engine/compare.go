package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dorylus/bench/compare"
	"dorylus/engine/sink"
	"dorylus/engine/store"
)

// compareFlags are the flags that compare has besides those of train.
type compareFlags struct{ modes, as, plot string }

func (a *app) compareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Train in several modes; accuracy, time, dollars and value side by side",
		Long: `Compare trains the same model on the same data, with the same seed, target and epochs, in one mode
after the other, and prints one table: accuracy, epochs and seconds to --target-accuracy (to the end without
one), time per epoch and by kind of task, bytes moved, dollars by part, and value, 1/(seconds·dollars), relative
to the first mode's. Times are measured on this machine; dollars are those times at the dated prices of
"prices show", as if this machine were of the type that --as names.

A mode is cpu, gpu or lambda, with :sync or :async for a pipeline other than --pipeline: cpu,cpu:async,lambda.
A mode that cannot be run here, such as gpu without a GPU, is "not run", with the reason, and the others are
compared; the exit code is 0 unless no mode was run. Times and dollars of an emulated device are left out.
All flags of train hold for every mode; --staleness for the asynchronous ones. --max-cost is each mode's own.
A mode in a config file or in the environment does not count. With --out=DIR each mode's run is kept in a folder
below DIR (cpu, cpu-async, ...), and DIR/compare.json has the whole. A mode that misses the target, or is stopped,
has no value. Peaks of memory are those of the whole process until then.`,
		Example: `  dorylus-engine compare --modes cpu,lambda --target-accuracy=0.78
  dorylus-engine compare --modes cpu,cpu:async --as cpu=c7i.2xlarge --data=mygraph --runs=5 --plot=modes.svg`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flag := cmd.Flags().Lookup("mode"); flag.Changed {
				return usagef("--mode=%s: compare has --modes, a list: --modes=%s,...", flag.Value, flag.Value)
			}
			r, err := a.resolve(cmd)
			if err != nil {
				return err
			}
			if r.Resume != "" {
				return usagef("--resume=%s: compare begins anew in every mode; leave it out, or go on with one run by train --resume", r.Resume)
			}
			return a.compare(cmd.Context(), r, f)
		},
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&f.modes, "modes", "cpu,lambda", "`LIST` of modes to train in; values are relative to the first")
	set.StringVar(&f.as, "as", "", "EC2 types that the machine is priced as, by mode: `MODE=TYPE,...`, where not --instance")
	set.StringVar(&f.plot, "plot", "", "draw accuracy over seconds and dollars, and values, into `FILE`.png or .svg")
	for _, name := range []string{"modes", "as"} {
		inGroup(set.Lookup(name), groupPipeline)
	}
	inGroup(set.Lookup("plot"), groupOutput)
	addSettings(cmd)
	for _, name := range []string{"mode", "resume"} {
		set.Lookup(name).Hidden = true
	}
	return cmd
}

// compareFile is the file of the whole comparison below --out.
const compareFile = "compare.json"

// compare trains in one mode after the other and sets the results side by side.
func (a *app) compare(ctx context.Context, r *resolved, f compareFlags) error {
	format, err := pictureFormat(f.plot)
	if err != nil {
		return err
	}
	entries, err := a.entries(r, f)
	if err != nil {
		return err
	}
	c := &r.Config
	if c.DryRun {
		return a.dryCompare(ctx, r, entries)
	}
	if !slices.ContainsFunc(entries, func(e *entry) bool { return e.notRun == "" }) {
		var errs []error
		for _, e := range entries {
			errs = append(errs, fmt.Errorf("mode %s: not run: %s", e.name, e.notRun))
		}
		return errors.Join(errs...)
	}
	folders, err := openCompareFolders(c.OutDir, entries)
	if err != nil {
		return err
	}
	st, err := a.loadData(ctx, &entries[0].Config, c.JSON)
	if err != nil {
		folders.discard()
		return stoppedEarly(ctx, err)
	}
	defer st.Close()
	cmp := &compare.Comparison{Target: c.TargetAccuracy, Runs: c.Runs}
	of, err := a.trainEntries(ctx, entries, st, cmp)
	folders.discard()
	if len(cmp.Ran().Modes) == 0 {
		return err
	}
	if f.plot != "" {
		picture, plotErr := cmp.Plot(format, of)
		if plotErr == nil {
			plotErr = writeFile(f.plot, picture)
		}
		err = errors.Join(err, plotErr)
	}
	return errors.Join(err, a.concludeComparison(cmp, c.OutDir, c.JSON))
}

// concludeComparison prints the table, or JSON, and keeps the JSON in folder dir, if
// that is not "".
func (a *app) concludeComparison(cmp *compare.Comparison, dir string, asJSON bool) error {
	data, err := cmp.JSON()
	if err != nil {
		return err
	}
	if asJSON {
		_, err = a.out.Write(data)
	} else {
		_, err = fmt.Fprint(a.out, cmp.Text())
	}
	if dir == "" {
		return err
	}
	err = errors.Join(err, writeFile(filepath.Join(dir, compareFile), data))
	if !asJSON && err == nil {
		_, err = fmt.Fprintf(a.out, "Kept in %s.\n", dir)
	}
	return err
}

// trainEntries trains in each mode and adds what it gave to cmp, until one fails or is
// interrupted. of says what the curves show.
func (a *app) trainEntries(ctx context.Context, entries []*entry, st *store.Store, cmp *compare.Comparison) (of string, err error) {
	for i, e := range entries {
		if e.notRun != "" {
			a.note(e.JSON, "Mode %s (%d of %d) is not run: %s", e.name, i+1, len(entries), e.notRun)
			cmp.Skip(e.name, e.Mode, e.Pipeline, e.notRun)
			continue
		}
		if style := a.progressStyle(&e.Config); style == sink.Plain || style == sink.Line {
			fmt.Fprintf(a.err, "Mode %s (%d of %d)\n", e.name, i+1, len(entries))
		}
		curves := &compare.Recorder{}
		runs, err := a.trainRuns(ctx, &e.Config, st, e.folder, e.bill, curves)
		if len(runs) > 0 {
			sum := sink.Merge(runs)
			err = errors.Join(err, e.folder.keep(&e.Config, sum))
			cmp.Add(e.name, sum, curves.Curves())
			of = curves.Of
		}
		if err != nil {
			return of, err
		}
	}
	return of, nil
}

// pictureFormat is the format of the picture at path, which must be a place for one; ""
// where none is wanted.
func pictureFormat(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if !slices.Contains(compare.Formats, format) {
		return "", usagef("--plot=%s: write a .png or .svg file", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".probe-")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return "", fmt.Errorf("write to the folder of --plot=%s: %w; choose one that can be written to", path, bare(err))
	}
	return format, nil
}
