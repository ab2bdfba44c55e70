package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// masked is a table with # in the place of numbers and of checksums, whatever their
// unit, and one blank between cells.
func masked(table string) string {
	number := regexp.MustCompile(`^([0-9][0-9.,]*|[0-9a-f]{8})$`)
	var b strings.Builder
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if words[0] == "SC" || words[0] == "∇SC" {
			continue // in sync mode they may take less than a tick of the clock
		}
		words = slices.DeleteFunc(words, func(w string) bool { return w == "ms" || w == "µs" || w == "s" })
		for i, w := range words {
			words[i] = number.ReplaceAllString(w, "#")
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		b.WriteString(indent + strings.Join(words, " ") + "\n")
	}
	return b.String()
}

func TestCompareTable(t *testing.T) {
	dir := t.TempDir()
	r := call(t, dir, nil, "compare", "--modes=cpu,cpu:async", "--as=cpu=c7i.2xlarge,cpu:async=c6i.2xlarge,gpu=p3.2xlarge", "--epochs=5", "--staleness=1", "--progress=plain")
	if r.code != exitDone || strings.Count(r.err, "prepared cora: merged") != 1 {
		t.Fatalf("exit %d; the data must be prepared once\n%s", r.code, r.err)
	}
	for _, want := range []string{"--as: gpu is not compared, so p3.2xlarge is not used\n", "Mode cpu (1 of 2)\n", "Mode cpu:async (2 of 2)\n", "sync, ", "async with staleness 1"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("%q is not in\n%s", want, r.err)
		}
	}
	table, notes, _ := strings.Cut(r.out, "\nMeasured here: ")
	head, table, _ := strings.Cut(table, "\n\n")
	if head != "gcn on cora: 2,708 vertices, 10,556 edges; seed 0" {
		t.Errorf("head %q", head)
	}
	// An async run on two cores may, or may not, have read anything old.
	if got, want := strings.Replace(masked(strings.TrimLeft(table, " ")), "weights # the same bits", "weights # #", 1), `cpu cpu:async
accuracy, test at best validation # % # %
epochs to the end # #
seconds to the end # #
time per epoch, median # #
workers' time # #
  AV # #
  GA # #
  loss+∇AV # #
  ∇AV # #
  ∇GA # #
  WU # #
  eval # #
bytes moved - -
dollars
  graph servers # #
  total # #
value, 1/(seconds·dollars) # #
value, relative # #
weights # #
`; got != want {
		t.Errorf("got\n%s\nwant\n%s\nof\n%s", got, want, r.out)
	}
	for _, want := range []string{"  cpu: time measured here, priced as 1 c7i.2xlarge at $0.357 an hour (us-east-1 on demand, 2026-07-20", "  cpu:async: time measured here, priced as 1 c6i.2xlarge", "Without --target-accuracy, "} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in\n%s", want, notes)
		}
	}
}

// modesOf are the modes of compare --json, whose parts of the bill must add up.
func modesOf(t *testing.T, text string) []map[string]any {
	t.Helper()
	all := object(t, text)
	list, _ := all["modes"].([]any)
	if len(all) != 1 {
		t.Errorf("keys besides modes in\n%s", text)
	}
	var modes []map[string]any
	for _, m := range list {
		mode := m.(map[string]any)
		modes = append(modes, mode)
		for _, k := range append(summaryKeys, "name", "value", "value_relative") {
			if _, ok := mode[k]; !ok {
				t.Errorf("%s: %s is missing", mode["name"], k)
			}
		}
		sum := 0.0
		bill := mode["cost_usd"].(map[string]any)
		for part, usd := range bill {
			if part != "total" {
				sum += math.Round(usd.(float64) * 1e9)
			}
		}
		if total := math.Round(bill["total"].(float64) * 1e9); sum != total || total <= 0 {
			t.Errorf("%s: %v adds up to %v", mode["name"], bill, sum/1e9)
		}
	}
	return modes
}

func TestCompareJSONAndFolders(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{"compare", "--modes=cpu,cpu:async", "--runs=2", "--epochs=6", "--seed=4", "--out=ALL"}, quiet...)
	text := mustRun(t, dir, args...)
	modes := modesOf(t, text)
	if len(modes) != 2 || modes[0]["name"] != "cpu" || modes[1]["name"] != "cpu:async" || modes[1]["mode"] != "cpu" || modes[1]["pipeline"] != "async" {
		t.Fatalf("modes\n%s", text)
	}
	if modes[0]["value_relative"] != 1.0 || math.Abs(modes[1]["value_relative"].(float64)/(modes[1]["value"].(float64)/modes[0]["value"].(float64))-1) > 1e-9 {
		t.Errorf("relative values %v and %v of %v and %v", modes[0]["value_relative"], modes[1]["value_relative"], modes[0]["value"], modes[1]["value"])
	}
	if kept, err := os.ReadFile(filepath.Join(dir, "ALL/compare.json")); err != nil || string(kept) != text {
		t.Errorf("compare.json differs from standard output (%v):\n%s", err, kept)
	}
	for i, folder := range []string{"ALL/cpu", "ALL/cpu-async"} {
		summary := object(t, mustRun(t, dir, "report", "--json", folder))
		for _, k := range summaryKeys {
			if !reflect.DeepEqual(summary[k], modes[i][k]) {
				t.Errorf("%s: %s is %v in its folder, %v in the comparison", folder, k, summary[k], modes[i][k])
			}
		}
		if r := call(t, dir, nil, "report", folder); r.code != exitDone || !strings.Contains(r.err, "agrees") {
			t.Errorf("report %s: exit %d\n%s", folder, r.code, r.err)
		}
	}
	alone := object(t, mustRun(t, dir, append(quiet, "--runs=2", "--epochs=6", "--seed=4")...))
	for _, k := range []string{"weights_sha256", "predictions_sha256", "test_acc", "loss"} {
		if alone[k] != modes[0][k] {
			t.Errorf("%s is %v, of train alone %v", k, modes[0][k], alone[k])
		}
	}
	before := tree(t, dir)
	wantFailure(t, call(t, dir, nil, args...), exitFailed, "--out=ALL holds a comparison already (compare.json)")
	wantFailure(t, call(t, dir, nil, append(args, "--out=ALL/cpu/run0")...), exitFailed, "holds a run already")
	wantFailure(t, call(t, dir, nil, append(args, "--out=NEW", "--data=none")...), exitFailed, "none")
	if after := tree(t, dir); after != before {
		t.Errorf("files before\n%safter\n%s", before, after)
	}
}

func TestCompareMissedTarget(t *testing.T) {
	dir := t.TempDir()
	modes := modesOf(t, mustRun(t, dir, append(quiet, "compare", "--modes=cpu,cpu:async", "--epochs=3", "--target-accuracy=0.99")...))
	for _, m := range modes {
		if note, _ := m["value_note"].(string); m["target_reached"] != false || m["value"] != nil || m["value_relative"] != nil || !strings.Contains(note, "missed the target") {
			t.Errorf("%s: reached %v, value %v, relative %v, %q", m["name"], m["target_reached"], m["value"], m["value_relative"], note)
		}
	}
	text := mustRun(t, dir, "compare", "--modes=cpu", "--epochs=3", "--target-accuracy=0.99", "--progress=none")
	for _, want := range []string{"target, 99.00 % in validation ", "missed\n", "> 3\n", "No value of cpu: it missed the target"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestCompareMistakes(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string][]string{
		"--modes=cpuu":                           {`--modes=cpuu: no mode "cpuu"; did you mean cpu?`},
		"--modes=tpu9":                           {`no mode "tpu9"; choose from cpu, gpu, lambda`},
		"--modes=cpu,":                           {`no mode ""`},
		"--modes=cpu:asyn":                       {`no pipeline "asyn"; did you mean async?`},
		"--modes=cpu,cpu:sync":                   {"cpu:sync would train as cpu does"},
		"--modes=cpu --as=cpu=c7i.2xlarg":        {`--as=cpu=c7i.2xlarg: no price of instance type "c7i.2xlarg": the nearest is c7i.2xlarge`},
		"--modes=cpu --as=cp=c7i.2xlarge":        {`no mode "cp"; did you mean cpu?`},
		"--modes=cpu --as=c7i.2xlarge":           {`"c7i.2xlarge" is no MODE=TYPE`},
		"--modes=cpu --as=cpu=none,cpu=none":     {"cpu is there twice"},
		"--modes=cpu --as=cpu=c5.2xlarge:spot":   {"no spot price of c5.2xlarge"},
		"--modes=cpu --as=gpu=p33.2xlarge":       {"the nearest is p3.2xlarge"},
		"--modes=cpu --mode=cpu":                 {"compare has --modes"},
		"--modes=cpu --plot=x.pdf":               {"--plot=x.pdf: write a .png or .svg file"},
		"--modes=cpu --lr=0":                     {"--lr=0: give a learning rate"},
		"--modes=cpu,cpu:async --lr=0":           {"--lr=0: give a learning rate"}, // once
		"--modes=cpu --staleness=1":              {"add --pipeline=async"},
		"--modez=cpu":                            {"unknown flag --modez; did you mean --modes?"},
		"--modes=cpu --max-cost=1 --as=cpu=none": {"a limit needs prices"},
	} {
		t.Run(args, func(t *testing.T) {
			wantFailure(t, call(t, dir, nil, append([]string{"compare"}, strings.Fields(args)...)...), exitUsage, want...)
		})
	}
	wantFailure(t, call(t, dir, nil, "compare", "--modes=cpu", "--plot=none/x.svg"), exitFailed, "--plot=none/x.svg", "no such file")
	env := driverEnv("/nowhere/libcuda.so.1")
	alone := call(t, dir, env, "--mode=gpu")
	reason := strings.TrimPrefix(strings.TrimSpace(alone.err), "dorylus-engine: --mode=gpu: ")
	wantFailure(t, call(t, dir, env, "compare", "--modes=gpu", "--out=RUN"), exitFailed, "mode gpu: not run: "+reason)
	if got := tree(t, dir); got != dir+"\n" {
		t.Errorf("mistakes have left files:\n%s", got)
	}
}

func TestComparePlots(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x.png", "x.svg"} {
		mustRun(t, dir, append(quiet, "compare", "--modes=cpu,cpu:async", "--epochs=3", "--target-accuracy=0.3", "--plot="+name)...)
	}
	data, err := os.ReadFile(filepath.Join(dir, "x.png"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(data)); err != nil {
		t.Errorf("x.png: %v", err)
	}
	if data, err = os.ReadFile(filepath.Join(dir, "x.svg")); err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	for err == nil {
		_, err = dec.Token()
	}
	if !errors.Is(err, io.EOF) || !bytes.Contains(data, []byte("<svg")) || !bytes.Contains(data, []byte("cpu:async")) {
		t.Errorf("x.svg: %v\n%.300s", err, data)
	}
}

func TestCompareInterrupted(t *testing.T) {
	dir := t.TempDir()
	r := started(t, dir, []string{"compare", "--modes=cpu,cpu:async", "--out=ALL"}, os.Interrupt)
	if r.code != exitInterrupted || !strings.Contains(r.err, "dorylus-engine: interrupted after") || !strings.Contains(r.err, "go on with --resume=ALL/cpu\n") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	if !strings.Contains(r.out, "No value of cpu: it was interrupted.\n") || strings.Contains(r.out, "async") {
		t.Errorf("table\n%s", r.out)
	}
	if exists(filepath.Join(dir, "ALL/cpu-async")) {
		t.Error("the folder of a mode that has not begun is still there")
	}
	wantFailure(t, call(t, dir, nil, "compare", "--resume=ALL/cpu"), exitUsage, "--resume=ALL/cpu: compare begins anew")
	mustRun(t, dir, append(quiet, "--resume=ALL/cpu", "--epochs=1000001", "--target-accuracy=0.01")...)
}

func TestCompareMaxCostIsEachModes(t *testing.T) {
	modes := modesOf(t, mustRun(t, t.TempDir(), append(quiet, "compare", "--modes=cpu,cpu:async", "--epochs=9", "--max-cost=0.000000001")...))
	for _, m := range modes {
		if m["reason"] != "max-cost" || m["value"] != nil || m["value_note"] != "--max-cost stopped it" {
			t.Errorf("%s: %v, value %v, %v", m["name"], m["reason"], m["value"], m["value_note"])
		}
	}
}

func TestCompareDryRun(t *testing.T) {
	dir := t.TempDir()
	r := call(t, dir, nil, "compare", "--modes=cpu,lambda", "--as=lambda=c5n.large", "--dry-run", "--out=RUN")
	if r.code != exitDone || !strings.Contains(r.out, "One after the other in these modes: cpu (priced as c5n.2xlarge), lambda (priced as c5n.large)\n") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	m := object(t, mustRun(t, dir, "compare", "--modes=cpu,lambda", "--dry-run", "--json"))
	if modes, _ := m["modes"].([]any); len(modes) != 2 || m["dry_run"] != true || m["vertices"] != 2708.0 {
		t.Errorf("%v", m)
	}
	if got := tree(t, dir); got != dir+"\n" {
		t.Errorf("a dry run has left files:\n%s", got)
	}
}

// Modes lambda and cpu give the same bits, and Lambda's dollars are in the table.
func TestCompareLambda(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: building and starting workers takes seconds; run without -short")
	}
	withWorker(t)
	dir := t.TempDir()
	text := mustRun(t, dir, "compare", "--modes=cpu,lambda", "--epochs=4", "--lambdas=2", "--progress=none", "--out=ALL")
	kept, err := os.ReadFile(filepath.Join(dir, "ALL/compare.json"))
	if err != nil {
		t.Fatal(err)
	}
	modes := modesOf(t, string(kept))
	if len(modes) != 2 || modes[0]["weights_sha256"] != modes[1]["weights_sha256"] {
		t.Errorf("weights %v and %v", modes[0]["weights_sha256"], modes[1]["weights_sha256"])
	}
	for _, part := range []string{"lambda_duration", "lambda_requests", "graph_servers"} {
		if usd := modes[1]["cost_usd"].(map[string]any)[part].(float64); usd <= 0 {
			t.Errorf("mode lambda: %s is %v", part, usd)
		}
	}
	for _, want := range []string{"dollars (Lambda's are modelled)", "Lambda GB-seconds", "the same bits", "Modelled: Lambda's dollars of lambda;"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
