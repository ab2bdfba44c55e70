package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dorylus/engine/testkit"
)

func TestGatesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range gates() {
		if seen[g.name] {
			t.Errorf("%s: two gates have this name", g.name)
		}
		seen[g.name] = true
		if !slices.Contains([]string{"accuracy", "roc-auc", "micro-f1"}, g.metric) {
			t.Errorf("%s: metric %q", g.name, g.metric)
		}
		if g.want <= 0 || g.want >= 100 || g.band < 0 || g.band > 3 || g.runs < 3 || g.source == "" {
			t.Errorf("%s: want %v, band %v, %d runs, source %q", g.name, g.want, g.band, g.runs, g.source)
		}
		if g.prepare != nil && g.data == "" {
			t.Errorf("%s: prepares the built-in graph", g.name)
		}
	}
}

// reference is a row of the table of measured scores beside the data.
type reference struct {
	set, metric string
	score       string
	seeds       int
	settings    string
}

var (
	refRow   = regexp.MustCompile(`^\| ([^|]+?) \| \**(\d+\.\d+) \+- \d+\.\d+\** \((\d+)(?: seeds)?\)[^|]*\| ([^|]*) \|`)
	refScore = regexp.MustCompile(`\((.*)\)$`)
	refCount = regexp.MustCompile(`(hidden|dropout|epochs)? ?([\d.]+) ?(epochs)?`)
)

// references reads that table.
func references(t *testing.T) []reference {
	text, err := os.ReadFile(testkit.Shared(t, "data", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Reference accuracy\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var list []reference
	for _, line := range strings.Split(section, "\n") {
		m := refRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		r := reference{set: m[1], metric: "accuracy", score: m[2], settings: m[4]}
		if p := refScore.FindStringSubmatch(r.set); p != nil {
			r.metric = map[string]string{"ROC AUC": "roc-auc", "micro-F1 at 0.5": "micro-f1"}[p[1]]
			r.set = strings.TrimSpace(strings.TrimSuffix(r.set, p[0]))
		}
		r.seeds, _ = strconv.Atoi(m[3])
		list = append(list, r)
	}
	return list
}

// flags are the settings of a reference in the engine's words, defaults left out.
func (r reference) flags() []string {
	var flags []string
	for _, s := range strings.Split(r.settings, ",") {
		s, _, _ = strings.Cut(strings.TrimSpace(s), ";")
		switch m := refCount.FindStringSubmatch(s); {
		case s == "row":
			if !strings.HasPrefix(r.set, "planetoid-") { // where it is the default
				flags = append(flags, "--features=row-normalize")
			}
		case s == "columns standardised":
			flags = append(flags, "--features=standardize")
		case s == "identity features":
			flags = append(flags, "--features=identity")
		case s == "no decay":
			flags = append(flags, "--weight-decay=0")
		case m != nil && m[1] == "dropout":
			flags = append(flags, "--dropout="+m[2], "--input-dropout="+m[2])
		case m != nil && m[1] == "hidden" && m[2] != "16":
			flags = append(flags, "--hidden="+m[2])
		case m != nil && m[3] == "epochs":
			flags = append(flags, "--epochs="+m[2])
		}
	}
	slices.Sort(flags)
	return flags
}

// The gates are the table beside the data: every set of it, its score, metric,
// settings and number of seeds, and a band no wider than its pass mark.
func TestGatesAreTheReference(t *testing.T) {
	narrow := regexp.MustCompile(`^(planetoid-.*|amazon-.*|coauthor-.*|musae-facebook|actor)$`)
	refs := references(t)
	if len(refs) != len(measured) {
		t.Errorf("the table has %d scores, but there are %d gates for it", len(refs), len(measured))
	}
	for _, r := range refs {
		i := slices.IndexFunc(measured, func(g gate) bool { return g.name == "gcn "+r.set })
		if i < 0 {
			t.Errorf("%s: no gate", r.set)
			continue
		}
		g := measured[i]
		if got := fmt.Sprintf("%.2f", g.want); got != r.score || g.metric != r.metric || !g.last || g.runs != r.seeds {
			t.Errorf("%s: the gate wants %s %s of %d runs (last epoch: %v), the table has %s %s of %d",
				r.set, g.metric, got, g.runs, g.last, r.metric, r.score, r.seeds)
		}
		mark := 3.0
		if narrow.MatchString(r.set) {
			mark = 1.5
		}
		if g.band > mark {
			t.Errorf("%s: a band of %v points, but the mark is %v", r.set, g.band, mark)
		}
		var flags []string
		for _, f := range slices.Concat(g.prepare, g.flags) {
			if f != "--direction=undirected" {
				flags = append(flags, f)
			}
		}
		slices.Sort(flags)
		if want := r.flags(); !slices.Equal(flags, want) {
			t.Errorf("%s: flags %v, but its settings %q are %v", r.set, flags, r.settings, want)
		}
	}
}
