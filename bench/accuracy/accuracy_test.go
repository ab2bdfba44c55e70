package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSumUp(t *testing.T) {
	for _, c := range []struct {
		runs []float64
		want scores
	}{
		{[]float64{70}, scores{Mean: 70, Median: 70, Min: 70}},
		{[]float64{80, 70, 90}, scores{Mean: 80, Median: 80, Std: 10, Min: 70}},
		{[]float64{80, 20, 81, 83}, scores{Mean: 66, Median: 80.5, Std: 30.692, Min: 20}},
	} {
		got := sumUp(c.runs)
		if got.Mean != c.want.Mean || got.Median != c.want.Median || got.Std != c.want.Std || got.Min != c.want.Min {
			t.Errorf("of %v: %+v, want %+v", c.runs, got, c.want)
		}
		if !slices.Equal(got.Runs, c.runs) {
			t.Errorf("of %v: the runs became %v", c.runs, got.Runs)
		}
	}
}

func TestJudge(t *testing.T) {
	low := []float64{10, 10, 10, 10}
	for _, c := range []struct {
		name string
		g    gate
		o    outcome
		want string
	}{
		{"reached", gate{want: 80}, outcome{best: []float64{80, 80, 81, 79}, last: low}, "pass"},
		{"mean too low", gate{want: 80}, outcome{best: []float64{80, 80, 80, 79}, last: low}, "MISSED"},
		{"median too low", gate{want: 80}, outcome{best: []float64{79, 79, 79, 90}, last: low}, "MISSED"},
		{"in the band", gate{want: 80, band: 1}, outcome{best: []float64{79, 79, 79, 79}, last: low}, "pass"},
		{"in the band, above", gate{want: 80, band: 1}, outcome{best: []float64{81, 81, 81, 81}, last: low}, "pass"},
		{"above the band", gate{want: 80, band: 1}, outcome{best: []float64{82, 81, 81, 81}, last: low}, "MISSED: too good"},
		{"above no band", gate{want: 80}, outcome{best: []float64{99, 99, 99, 99}, last: low}, "pass"},
		{"median below the band", gate{want: 80, band: 1}, outcome{best: []float64{78, 78, 78, 84}, last: low}, "MISSED"},
		{"the last epoch counts", gate{want: 80, last: true}, outcome{best: low, last: []float64{80, 80, 80, 80}}, "pass"},
		{"the last epoch is low", gate{want: 80, last: true}, outcome{best: []float64{80, 80, 80, 80}, last: low}, "MISSED: collapsed runs 0 1 2 3"},
		{"one run collapsed", gate{want: 80}, outcome{best: []float64{90, 90, 64.9, 90}, last: low}, "MISSED: collapsed runs 2"},
		{"one run is weak", gate{want: 80}, outcome{best: []float64{90, 90, 65, 90}, last: low}, "pass"},
		{"control", gate{want: 65, below: true}, outcome{best: []float64{60, 20, 60, 60}, last: low}, "pass"},
		{"control learns", gate{want: 65, below: true}, outcome{best: []float64{65, 65, 65, 65}, last: low}, "MISSED"},
	} {
		r := judge(c.g, c.o, time.Second)
		if got := r.verdict(); got != c.want || r.Pass != (c.want == "pass") {
			t.Errorf("%s: %q (pass: %v), want %q; %+v", c.name, got, r.Pass, c.want, r)
		}
	}
}

const (
	accSummary = `{"metric":"accuracy","runs":[{"metric":"accuracy","test_acc":0.5},{"metric":"accuracy","test_acc":0.7}]}`
	accLines   = `{"note":"prepared it"}
{"epoch":1,"epochs":2,"test_acc":0.1}
{"epoch":2,"epochs":2,"test_acc":0.3}
a word
{"epoch":1,"epochs":2,"test_acc":0.1}
{"epoch":2,"epochs":2,"test_acc":0.4}
`
	aucSummary = `{"metric":"roc-auc","test_acc":0.9,"test_metric":0.61,"version":"v1","threads":2,"device":"cpu"}`
	aucLines   = `{"epoch":2,"epochs":2,"test_acc":0.9,"metric":"roc-auc","test_metric":0.6}`
)

func TestParse(t *testing.T) {
	o, err := parse(gate{metric: "accuracy", runs: 2}, []byte(accSummary), []byte(accLines))
	if err != nil || !slices.Equal(o.best, []float64{50, 70}) || !slices.Equal(o.last, []float64{30, 40}) {
		t.Errorf("two runs: %+v, %v", o, err)
	}
	o, err = parse(gate{metric: "roc-auc", runs: 1}, []byte(aucSummary), []byte(aucLines))
	if err != nil || !slices.Equal(o.best, []float64{61}) || !slices.Equal(o.last, []float64{60}) || o.version != "v1" || o.threads != 2 || o.device != "cpu" {
		t.Errorf("another metric: %+v, %v", o, err)
	}
	for _, c := range []struct{ name, metric, summary, lines, want string }{
		{"not JSON", "accuracy", "{", accLines, "read the engine's summary"},
		{"another metric", "micro-f1", aucSummary, aucLines, "run 0 measured roc-auc, not micro-f1"},
		{"not measured", "roc-auc", `{"metric":"roc-auc","test_acc":0.9}`, aucLines, "run 0: no roc-auc of test vertices was measured"},
		{"too few runs", "roc-auc", aucSummary, aucLines, "1 runs and the progress 1 last epochs, but 2"},
		{"a run without its last epoch", "accuracy", accSummary, strings.Replace(accLines, `{"epoch":2`, `{"epoch":1`, 1), "1 last epochs"},
		{"no accuracy at the end", "accuracy", accSummary, strings.Replace(accLines, "0.4", "null", 1), "last epoch of run 1: no accuracy"},
	} {
		if o, err := parse(gate{metric: c.metric, runs: 2}, []byte(c.summary), []byte(c.lines)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, error %v, want %q", c.name, o, err, c.want)
		}
	}
}

// fake is a lab whose engine answers with what two runs of it would write and notes
// its arguments, and whose folders have the files named.
func fake(t *testing.T, files ...string) (l lab, calls string) {
	dir := t.TempDir()
	l = lab{engine: filepath.Join(dir, "engine"), data: filepath.Join(dir, "data"), splits: filepath.Join(dir, "splits")}
	calls = filepath.Join(dir, "calls")
	script := `#!/bin/sh
echo "$@" >>'` + calls + `'
case $1 in
devices) echo '{"devices":[{"detail":"slow"},{"default":true,"detail":"fast"}]}' ;;
train) for run in 1 2 3; do echo '{"epoch":1,"epochs":1,"metric":"roc-auc","test_metric":0.8}' >&2; done
  run='{"metric":"roc-auc","test_metric":0.81}'
  echo "{\"metric\":\"roc-auc\",\"version\":\"v2\",\"threads\":2,\"device\":\"cpu\",\"runs\":[$run,$run,$run]}" ;;
esac
`
	if err := os.WriteFile(l.engine, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Join(dir, f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l, calls
}

func TestRun(t *testing.T) {
	l, calls := fake(t, "data/github-social", "splits/github-social.json")
	out := filepath.Join(t.TempDir(), "made", "rows.json")
	var table bytes.Buffer
	if err := run(l, "github-social|musae-twitch", out, &table); err != nil {
		t.Fatalf("%v\n%s", err, table.String())
	}
	for _, want := range []string{"80.00", "80.91 ± 3.0", "SKIPPED gcn musae-twitch-ptbr: musae-twitch-ptbr is missing", "1 passed, 0 failed, 1 skipped"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	var got results
	text, err := os.ReadFile(out)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || len(got.Rows) != 1 || !got.Rows[0].Pass || got.Rows[0].Best.Mean != 81 || got.Rows[0].Made.CPU != "fast" || got.Rows[0].Made.Version != "v2" {
		t.Errorf("rows %+v, %v", got.Rows, err)
	}
	log, err := os.ReadFile(calls)
	for _, want := range []string{"--metric=roc-auc", "--runs=3", "--data=" + filepath.Join(l.data, "github-social"),
		"--split-file=" + filepath.Join(l.splits, "github-social.json"), "--features=identity"} {
		if err != nil || !strings.Contains(string(log), want) {
			t.Errorf("the engine was not called with %s: %v\n%s", want, err, log)
		}
	}
}

func TestRunNothing(t *testing.T) {
	l, _ := fake(t, "data/github-social") // its split is missing
	var table bytes.Buffer
	if err := run(l, "github-social", "", &table); err == nil || !strings.Contains(err.Error(), "every gate was skipped") {
		t.Errorf("all skipped: error %v", err)
	}
	if want := "SKIPPED gcn github-social: github-social.json is missing"; !strings.Contains(table.String(), want) {
		t.Errorf("the table lacks %q:\n%s", want, table.String())
	}
	if err := run(l, "nosuch", "", &table); err == nil || !strings.Contains(err.Error(), `no gate's name matches "nosuch"`) {
		t.Errorf("no such gate: error %v", err)
	}
}

func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.json")
	list := []gate{{name: "a"}, {name: "b"}, {name: "c"}}
	for _, rows := range [][]row{{{Name: "c", Runs: 1}, {Name: "gone"}}, {{Name: "b", Runs: 2}, {Name: "a", Runs: 2}}, {{Name: "b", Runs: 3}}} {
		if err := save(path, rows, list); err != nil {
			t.Fatal(err)
		}
	}
	var got results
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	var names []string
	var runs []int
	for _, r := range got.Rows {
		names, runs = append(names, r.Name), append(runs, r.Runs)
	}
	if err != nil || !slices.Equal(names, []string{"a", "b", "c"}) || !slices.Equal(runs, []int{2, 3, 1}) {
		t.Errorf("rows %v with runs %v, %v", names, runs, err)
	}
	if err := os.WriteFile(path, []byte("["), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := save(path, nil, list); err == nil || !strings.Contains(err.Error(), "remove it or name another file") {
		t.Errorf("over a broken file: error %v", err)
	}
}
