package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dorylus/engine/sink"
)

func (a *app) reportCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Tables of a run, computed from its events alone",
		Long: `Report computes the metric by epoch, precision, recall and F1 of each class with the confusion
matrix on the test rows, time per task kind and staleness from RUN/events.jsonl, and checks that
RUN/summary.json says the same. Times and dollars of an emulated device are left out.`,
		Example: "  dorylus-engine report RUN",
		Args:    oneArg("the folder of a run"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.report(args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the summary that the events give, as one JSON object")
	return cmd
}

func (a *app) report(dir string, asJSON bool) error {
	dirs, err := runDirs(dir)
	if err != nil {
		return fmt.Errorf("report %s: %w", dir, err)
	}
	var runs []sink.Summary
	for _, d := range dirs {
		tally := sink.NewTally()
		if err := sink.ReadEventsFile(filepath.Join(d, eventsFile), tally); err != nil {
			return fmt.Errorf("report %s: %w", dir, err)
		}
		if !asJSON {
			if len(dirs) > 1 {
				fmt.Fprintf(a.out, "%s\n", d)
			}
			fmt.Fprintln(a.out, tally.Tables())
		}
		runs = append(runs, tally.Summary())
	}
	sum := sink.Merge(runs)
	data, err := sum.JSON()
	if err != nil {
		return err
	}
	if asJSON {
		var shown []byte
		if shown, err = sum.Timed().JSON(); err == nil {
			_, err = a.out.Write(shown)
		}
	} else {
		_, err = fmt.Fprint(a.out, sum.Words())
	}
	if err != nil {
		return err
	}
	return a.compareSummary(filepath.Join(dir, summaryFile), data, asJSON)
}

// runDirs is dir, or its folders run0, run1, ... if it holds several runs.
func runDirs(dir string) ([]string, error) {
	if exists(filepath.Join(dir, eventsFile)) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, bare(err)
	}
	byNumber := map[int]string{}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "run")
		n, err := strconv.Atoi(digits)
		if path := filepath.Join(dir, e.Name()); ok && err == nil && exists(filepath.Join(path, eventsFile)) {
			byNumber[n] = path
		}
	}
	var dirs []string
	for n := range len(byNumber) {
		if path, ok := byNumber[n]; ok {
			dirs = append(dirs, path)
		}
	}
	if len(dirs) == 0 {
		return nil, errors.New("it holds no events.jsonl; name a folder that --out made")
	}
	return dirs, nil
}

// compareSummary checks that summary.json says what the events say.
func (a *app) compareSummary(path string, want []byte, quiet bool) error {
	got, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		a.note(quiet, "There is no %s: the run has not ended, or not by itself.", summaryFile)
		return nil
	}
	if err != nil {
		return err
	}
	if bytes.Equal(got, want) {
		a.note(quiet, "%s agrees with the events.", path)
		return nil
	}
	var g, w map[string]json.RawMessage
	if err := json.Unmarshal(got, &g); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		return err
	}
	var keys []string
	for k := range w {
		if !bytes.Equal(g[k], w[k]) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return fmt.Errorf("%s disagrees with the events in %s; the events are right unless they were edited", path, strings.Join(keys, ", "))
}
