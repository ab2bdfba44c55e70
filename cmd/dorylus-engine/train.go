package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dorylus/engine"
	"dorylus/engine/cost"
	"dorylus/engine/sink"
	"dorylus/engine/store"
)

const trainExamples = `  dorylus-engine                                        train a GCN on Cora
  dorylus-engine --runs=10                              ten seeds, mean and deviation
  dorylus-engine prepare edges.csv -o mygraph           import your own graph, then ...
  dorylus-engine --data=mygraph --hidden=128 --out=RUN  ... train on it and keep the run
  dorylus-engine --resume=RUN --epochs=400              go on where it ended
  dorylus-engine --pipeline=async --staleness=1         let intervals run ahead`

func (a *app) trainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model (the same as no command)",
		Long:  "Train trains a model on a whole graph and says how good it is on vertices that it has not seen.",
	}
	a.setUpTrain(cmd)
	return cmd
}

// setUpTrain makes cmd train.
func (a *app) setUpTrain(cmd *cobra.Command) {
	cmd.Example = trainExamples
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := a.resolve(cmd)
		if err != nil {
			return err
		}
		return a.train(cmd.Context(), r)
	}
	addSettings(cmd)
}

// train runs everything from settings to summary.
func (a *app) train(ctx context.Context, r *resolved) error {
	c := &r.Config
	if err := c.Validate(); err != nil {
		return usage(err)
	}
	if c.Mode == "gpu" {
		if err := a.chooseGPUs(c); err != nil {
			return err
		}
	}
	if c.OutDir == "" {
		c.OutDir = c.Resume
	}
	if a.seat != nil {
		if err := a.seat.settle(c); err != nil {
			return err
		}
	}
	bill, err := a.newBiller(c)
	if err != nil {
		return err
	}
	if c.DryRun {
		return a.dryRun(ctx, r)
	}
	if c.SpotNotice {
		var done func()
		if ctx, done, err = a.heedSpot(ctx); err != nil {
			return err
		}
		defer done()
	}
	folder, err := openRunFolder(c)
	if err != nil {
		return err
	}
	st, err := a.loadData(ctx, c, c.JSON || !a.seat.leads())
	if err != nil {
		folder.discard()
		return a.seat.early(ctx, err)
	}
	defer st.Close()
	runs, err := a.trainRuns(ctx, c, st, folder, bill)
	if len(runs) == 0 || !a.seat.leads() {
		folder.discard()
		return err
	}
	sum := sink.Merge(runs)
	return errors.Join(err, folder.keep(c, sum), a.conclude(c, folder, sum))
}

// stoppedEarly is the signal that ended ctx, if one did, else err.
func stoppedEarly(ctx context.Context, err error) error {
	var s stopped
	if ctx.Err() == nil || !errors.As(context.Cause(ctx), &s) {
		return err
	}
	return stoppedError(s, "before training began", false)
}

// stoppedError is what a run that was stopped from outside ends with.
func stoppedError(s stopped, when string, saved bool) error {
	err := fmt.Errorf("%w %s", s, when)
	switch {
	case s.Signal != syscall.SIGTERM:
		return &codedError{exitInterrupted, err}
	case saved:
		return &codedError{exitTryAgain, err}
	}
	return &codedError{exitFailed, err}
}

// trainRuns trains c.Runs times, or until something ends it. It returns the
// summaries of the runs that have begun. The events of all go to more, too.
func (a *app) trainRuns(ctx context.Context, c *engine.Config, st *store.Store, folder *runFolder, bill *biller, more ...engine.Listener) ([]sink.Summary, error) {
	progress := sink.NewProgress(a.err, a.progressStyle(c), time.Now)
	progress.Columns, progress.Brief = a.columns, c.Runs > 1
	var runs []sink.Summary
	for run := range c.Runs {
		if run > 0 && bill.over(cost.Bill{}) {
			a.note(false, "Stopped after %d of %d runs: they cost %s, more than --max-cost=%s.", run, c.Runs, bill.words(cost.Bill{}), decimal(c.MaxCost))
			break
		}
		one := *c
		one.Seed, one.Runs, one.OutDir = c.Seed+uint64(run), 1, folder.sub(run, c.Runs)
		if c.SplitIndex < 0 && len(st.Splits) > 0 {
			one.SplitIndex = a.seat.run(run) % len(st.Splits)
		}
		s, began, err := a.trainRun(ctx, one, st, a.seat.run(run), bill, progress, more)
		if began {
			runs = append(runs, s)
		}
		if err != nil {
			return runs, err
		}
	}
	return runs, nil
}

// trainRun trains once. began says that there is something to sum up.
func (a *app) trainRun(ctx context.Context, c engine.Config, st *store.Store, run int, bill *biller, progress *sink.Progress, more engine.Listeners) (s sink.Summary, began bool, err error) {
	tally := sink.NewTally()
	was := ""
	if c.Resume != "" && a.seat.leads() {
		if err := sink.ReadEventsFile(filepath.Join(c.Resume, eventsFile), tally); err != nil {
			return s, false, fmt.Errorf("resume %s: %w", c.Resume, err)
		}
		if err := bill.mayGoOn(tally.Bill()); err != nil {
			return s, false, fmt.Errorf("resume %s: %w", c.Resume, err)
		}
		past := tally.Summary()
		was = kernelsOf(past.Device, past.Precision, past.GPUs)
	}
	progress.Bill = tally.Bill
	files, err := openSinks(c.OutDir, &c, a.warn)
	if err != nil {
		return s, false, err
	}
	watch := &watcher{}
	listeners := slices.Concat(engine.Listeners{tally, watch, progress}, more, files.Listeners)
	_, err = a.runTraining(ctx, c, st, run, bill.rates, bill.stop(tally), a.seat.tells(&mover{listeners, was}))
	err = a.gpuEnd(&c, err, false)
	_ = files.close() // warned of already
	if !watch.began {
		files.discard()
		return s, false, a.seat.early(ctx, err)
	}
	s = tally.Summary()
	bill.add(tally.Bill())
	if c.OutDir != "" {
		data, jsonErr := s.JSON()
		if jsonErr == nil {
			jsonErr = writeFile(filepath.Join(c.OutDir, summaryFile), data)
		}
		err = errors.Join(err, jsonErr)
	}
	if err == nil && s.Reason == overBudget {
		a.note(false, "%s", bill.stoppedText(&c, watch.checkpoint != ""))
	}
	if err == nil && s.Reason == "interrupted" && ctx.Err() == nil {
		return s, true, a.seat.stoppedElsewhere(watch.checkpoint)
	}
	if err == nil && s.Reason == "interrupted" {
		err = a.interrupted(ctx, &c, watch, s)
	}
	return s, true, err
}

// watcher remembers whether a run began and where its last checkpoint is.
type watcher struct {
	began      bool
	checkpoint string
}

func (w *watcher) Event(e engine.Event) {
	switch e := e.(type) {
	case engine.RunStart:
		w.began = true
	case engine.Checkpointed:
		w.checkpoint = e.Path
	}
}

// interrupted says how a run that was stopped from outside can be gone on with.
func (a *app) interrupted(ctx context.Context, c *engine.Config, w *watcher, s sink.Summary) error {
	var sig stopped
	if !errors.As(context.Cause(ctx), &sig) {
		return context.Cause(ctx)
	}
	when := fmt.Sprintf("after %.0f of %d epochs; ", float64(s.EpochsRun), c.Epochs)
	if !a.seat.leads() {
		return stoppedError(sig, when+"the checkpoint is graph server 0's", a.seat.kept != "")
	}
	if w.checkpoint == "" {
		return stoppedError(sig, when+"nothing is kept (--out=RUN would keep a checkpoint)", false)
	}
	return stoppedError(sig, when+"go on with --resume="+c.OutDir, true)
}

// progressStyle is how progress is shown here.
func (a *app) progressStyle(c *engine.Config) sink.Style {
	switch {
	case c.Progress == "auto" && a.columns > 0:
		return sink.Line
	case c.Progress == "auto":
		return sink.Plain
	}
	return sink.Style(c.Progress)
}

// conclude prints the summary.
func (a *app) conclude(c *engine.Config, folder *runFolder, s sink.Summary) error {
	data, err := s.JSON()
	if err != nil {
		return err
	}
	if c.JSON {
		_, err = a.out.Write(data)
	} else {
		_, err = fmt.Fprint(a.out, s.Words())
	}
	if folder.path != "" && !c.JSON && err == nil && s.Reason != "failed" {
		_, err = fmt.Fprintf(a.out, "Kept in    %s\n", folder.path)
	}
	return err
}

// dryRun says what a run would do.
func (a *app) dryRun(ctx context.Context, r *resolved) error {
	st, err := a.loadData(ctx, &r.Config, r.JSON)
	if err != nil {
		return err
	}
	defer st.Close()
	split, err := splitOf(st, &r.Config, 0)
	if err != nil {
		return err
	}
	plans, refused := a.dryMemory(ctx, &r.Config, forTraining(&r.Config, st, split))
	if r.JSON {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		object := map[string]any{
			"dry_run": true, "config": r.values(), "dataset": st.Meta.Name, "vertices": st.Meta.Vertices, "edges": st.Meta.Edges,
			"features": st.Meta.Features, "classes": st.Meta.Classes, "splits": len(st.Splits),
			"train_rows": len(split.Train), "val_rows": len(split.Val), "test_rows": len(split.Test),
		}
		if plans != nil {
			object["memory_plan"] = plansJSON(plans)
		}
		return errors.Join(enc.Encode(object), refused)
	}
	fmt.Fprint(a.out, r.text())
	fmt.Fprintf(a.out, "\nWould train %s for %d epochs, %d times, on %s: %d vertices, %d edges, %d features, %d classes,\n"+
		"%d splits, the first with %d training, %d validation and %d test vertices. Nothing was done (--dry-run).\n",
		r.Model, r.Epochs, r.Runs, st.Meta.Name, st.Meta.Vertices, st.Meta.Edges, st.Meta.Features, st.Meta.Classes,
		len(st.Splits), len(split.Train), len(split.Val), len(split.Test))
	if plans != nil {
		fmt.Fprintf(a.out, "\n%s\n", plansText(plans))
	}
	return refused
}

// exists says whether there is something at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
