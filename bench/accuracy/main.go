// Command accuracy trains on real graphs, read from the files in which people have
// them, and holds the test scores over seeds to what was published or measured
// elsewhere. It prints a table, puts the rows into a JSON file, and exits 1 if a gate
// is missed, or if none could be tried. A gate whose data are missing is skipped, and
// the last lines name it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

func main() {
	var l lab
	flag.StringVar(&l.engine, "engine", "bin/dorylus-engine", "the `FILE` to run")
	flag.StringVar(&l.data, "data", "../shared/data", "`FOLDER` of the graphs")
	flag.StringVar(&l.splits, "splits", "../shared/golden/splits", "`FOLDER` of their splits")
	only := flag.String("only", "", "run the gates whose name matches this `REGEXP`")
	out := flag.String("out", "", "put the rows into this JSON `FILE`, where they replace those of the same gates")
	flag.Parse()
	if err := run(l, *only, *out, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

// layout is a line of the table, which is printed while gates are running.
const layout = "%-32s %4s  %-9s %-15s %6s  %6s  %5s  %6s  %-11s %-6s %7s  %s\n"

func points(x float64) string { return fmt.Sprintf("%.2f", x) }

// run tries the gates whose name matches only.
func run(l lab, only, out string, w io.Writer) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var chosen []gate
	for _, g := range gates() {
		if match.MatchString(g.name) {
			chosen = append(chosen, g)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-only: no gate's name matches %q", only)
	}
	cpu, err := l.cpu()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, layout, "gate", "runs", "metric", "after", "mean %", "median", "±", "least", "gate", "", "seconds", "source")
	var rows []row
	var skipped []string
	missed := 0
	for _, g := range chosen {
		if name := l.missing(g); name != "" {
			fmt.Fprintf(w, layout, g.name, "-", g.metric, "-", "-", "-", "-", "-", "-", "SKIPPED", "-", name+" is missing")
			skipped = append(skipped, fmt.Sprintf("SKIPPED %s: %s is missing; nothing is known of this gate", g.name, name))
			continue
		}
		start := time.Now()
		o, err := l.train(g)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		r := judge(g, o, time.Since(start))
		r.Made = origin{Date: start.UTC().Format(time.DateOnly), Version: o.version, CPU: cpu, Threads: o.threads, Device: o.device}
		rows = append(rows, r)
		if !r.Pass {
			missed++
		}
		s := r.judged()
		fmt.Fprintf(w, layout, r.Name, fmt.Sprint(r.Runs), r.Metric, r.After, points(s.Mean), points(s.Median), points(s.Std), points(s.Min),
			r.limit(), r.verdict(), fmt.Sprintf("%.1f", r.Seconds), r.Source)
	}
	for _, line := range skipped {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", len(rows)-missed, missed, len(skipped))
	if out != "" {
		if err := save(out, rows, gates()); err != nil {
			return err
		}
	}
	switch {
	case missed > 0:
		return fmt.Errorf("%d of %d gates missed", missed, len(rows))
	case len(rows) == 0:
		return errors.New("every gate was skipped: get the data, or say with -data and -splits where they are")
	}
	return nil
}

// cpu is the processor of the device that the engine takes by default.
func (l lab) cpu() (string, error) {
	text, _, err := l.call([]string{"devices", "--json"})
	if err != nil {
		return "", err
	}
	var s struct {
		Devices []struct {
			Default bool   `json:"default"`
			Detail  string `json:"detail"`
		} `json:"devices"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return "", fmt.Errorf("read the engine's devices: %w", err)
	}
	for _, d := range s.Devices {
		if d.Default {
			return d.Detail, nil
		}
	}
	return "", errors.New("the engine has no default device")
}
