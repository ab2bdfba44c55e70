// Command accuracy trains on real graphs and holds the mean test accuracy over
// seeds to what was published or measured elsewhere. It prints a table, writes it
// as JSON, and exits 1 if a gate is missed.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"text/tabwriter"
	"time"
)

// row is a gate's outcome.
type row struct {
	Name    string   `json:"name"`
	Flags   []string `json:"flags"`
	Runs    int      `json:"runs"`
	Test    float64  `json:"test_percent"`
	Std     float64  `json:"std_points"`
	Want    float64  `json:"want_percent"`
	Band    float64  `json:"band_points"`
	Control bool     `json:"must_stay_below,omitempty"`
	Pass    bool     `json:"pass"`
	Seconds float64  `json:"seconds"`
	Source  string   `json:"source"`
}

// summary is the part of the engine's --json that is looked at.
type summary struct {
	TestAcc float64 `json:"test_acc"`
	Std     float64 `json:"test_acc_std"`
}

func main() {
	engine := flag.String("engine", "bin/dorylus-engine", "the `FILE` to run")
	data := flag.String("data", "../shared/data", "`FOLDER` of the graphs")
	splits := flag.String("splits", "../shared/golden/splits", "`FOLDER` of their splits")
	only := flag.String("only", "", "run the gates whose name matches this `REGEXP`")
	out := flag.String("out", "", "write the rows as JSON to this `FILE`")
	flag.Parse()
	if err := run(*engine, *data, *splits, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(engine, data, splits, only, out string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "gate\truns\ttest %\t± points\tgate %\t\tseconds\tsource")
	var rows []row
	missed, skipped := 0, 0
	for _, g := range gates {
		if !match.MatchString(g.name) {
			continue
		}
		if g.data != "" {
			if _, err := os.Stat(filepath.Join(data, g.data)); err != nil {
				fmt.Fprintf(table, "%s\t-\t-\t-\t-\tSKIPPED\t-\t%s is missing\n", g.name, g.data)
				skipped++
				continue
			}
		}
		r, err := train(engine, data, splits, g)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		rows = append(rows, r)
		verdict := "pass"
		if !r.Pass {
			verdict = "MISSED"
			missed++
		}
		limit := fmt.Sprintf("≥ %.2f", g.want-g.band)
		if g.below {
			limit = fmt.Sprintf("< %.2f", g.want)
		}
		fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%s\t%s\t%.1f\t%s\n", g.name, g.runs, r.Test, r.Std, limit, verdict, r.Seconds, g.source)
		table.Flush()
	}
	table.Flush()
	fmt.Printf("%d passed, %d failed, %d skipped\n", len(rows)-missed, missed, skipped)
	if out != "" {
		if err := write(out, rows); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d gates missed", missed, len(rows))
	}
	return nil
}

func train(engine, data, splits string, g gate) (row, error) {
	args := append([]string{"--json", "--progress=none", fmt.Sprintf("--runs=%d", g.runs)}, g.flags...)
	if g.data != "" {
		args = append(args, "--data="+filepath.Join(data, g.data))
	}
	if g.splits != "" {
		args = append(args, "--split-file="+filepath.Join(splits, g.splits))
	}
	var stderr bytes.Buffer
	cmd := exec.Command(engine, args...)
	cmd.Stderr = &stderr
	start := time.Now()
	text, err := cmd.Output()
	if err != nil {
		return row{}, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var s summary
	if err := json.Unmarshal(text, &s); err != nil {
		return row{}, fmt.Errorf("read the engine's summary: %w", err)
	}
	r := row{
		Name: g.name, Flags: g.flags, Runs: g.runs, Test: 100 * s.TestAcc, Std: 100 * s.Std, Want: g.want, Band: g.band,
		Control: g.below, Seconds: time.Since(start).Seconds(), Source: g.source,
	}
	r.Pass = r.Test >= g.want-g.band
	if g.below {
		r.Pass = r.Test < g.want
	}
	return r, nil
}

func write(path string, rows []row) error {
	text, err := json.MarshalIndent(map[string]any{
		"what": "mean test accuracy over seeds, after the best validation epoch", "cpus": runtime.NumCPU(), "go": runtime.Version(), "rows": rows,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
