package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
)

func TestReadServers(t *testing.T) {
	const events = `{"event":"run_start"}
{"event":"epoch","epoch":0,"seconds":9}
{"event":"server","rank":0,"bytes_sent":1}
{"event":"run_start"}
{"event":"tasks","epoch":2,"nanoseconds":{"AV":2000000000,"GA":500000000},"age":[5,1]}
{"event":"epoch","epoch":2,"seconds":0.5}
{"event":"tasks","epoch":3,"nanoseconds":{"AV":1000000000},"age":[4,0,2]}
{"event":"epoch","epoch":3,"seconds":1.5}
{"event":"server","rank":0,"peak_memory_bytes":7,"row_value_bytes_sent":40,"row_bytes_sent":30,"row_framing_bytes_sent":2,"bytes_sent":50,"bytes_received":3,"row_age_from":[[4,1],[5,0,2]]}
{"event":"tasks","epoch":2,"nanoseconds":{"GA":250000000}}
{"event":"server","rank":1,"bytes_sent":60}
{"event":"server","role":"param","rank":0,"peak_memory_bytes":9}
{"event":"run_done"}
`
	path := filepath.Join(t.TempDir(), "events.jsonl")
	read := func(text string) ([]server, []float64, error) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return readServers(path)
	}
	all, epochs, err := read(events)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	a, b := all[0], all[1]
	if a.Seconds["AV"] != 3 || a.Seconds["GA"] != 0.5 || len(a.From) != 2 || !slices.Equal(a.From[1], []int64{5, 0, 2}) || a.Sent != 50 || a.Received != 3 || a.RowValues != 40 || a.Peak != 7 {
		t.Errorf("graph server 0: %+v", a)
	}
	if b.Seconds["GA"] != 0.25 || len(b.From) != 0 || b.Sent != 60 {
		t.Errorf("graph server 1: %+v", b)
	}
	if r := (&run{epochs: epochs}); len(epochs) != 2 || r.meanEpoch() != 1 {
		t.Errorf("epochs of the last part took %v", epochs)
	}
	for bad, why := range map[string]string{
		"{":                           "unexpected end",
		`{"event":"server","rank":1}`: "graph server 1 speaks after 0 others",
		"{\"event\":\"tasks\",\"age\":[3,1]}\n{\"event\":\"server\",\"rank\":0,\"row_age_from\":[[1],[1,1]]}": "graph server 0 has read rows of ages [3 1], by the servers that have them [2 1]",
	} {
		if _, _, err := read(bad); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", bad, err, why)
		}
	}
}

// A path of 0-1-2-3-4, cut behind 1 and behind 3; only 2 and 4 are trained on.
func TestLeastRows(t *testing.T) {
	ptr := []int64{0, 1, 3, 5, 7, 8}
	neighbours := []int32{1, 0, 2, 1, 3, 2, 4, 3}
	owner := owners(cut{Parts: []partition{{Rows: 2}, {Rows: 2}, {Rows: 1}}}, 5)
	if !slices.Equal(owner, []int{0, 0, 1, 1, 2}) {
		t.Fatalf("owners %v", owner)
	}
	got := leastOf(ptr, neighbours, owner, []bool{false, false, true, false, true}, 3)
	// 2 needs 1; 4 needs 3; 1 needs the gradient of 2, 3 that of 4.
	if want := (leastRows{2, 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got.bytes(10) != 160 {
		t.Errorf("%d bytes of width 10", got.bytes(10))
	}
	if got := leastOf(ptr, neighbours, owner, make([]bool, 5), 3); got != (leastRows{}) {
		t.Errorf("nothing is trained on, and %+v cross", got)
	}
}

// What one epoch moves is what the longer run moves more, by its epochs.
func TestRowsOf(t *testing.T) {
	one := &run{servers: []server{{RowValues: 100, RowBytes: 90, Sent: 150, Received: 2}, {RowValues: 50, Sent: 60}}}
	more := &run{servers: []server{{RowValues: 300, RowBytes: 280, Sent: 356, Received: 6}, {RowValues: 50, Sent: 60}}}
	row := rowsOf(2, 2, one, more, leastRows{15, 10}, 1, cut{GhostBytes: 200})
	if row.Least != 100 || row.Values != 100 || row.Packed != 95 || row.Wire != 105 || math.Abs(row.Overhead-0.05) > 1e-12 || row.Ceiling != 200 {
		t.Errorf("%+v", row)
	}
	var r report
	r.judgeRows(row)
	row.Values, row.Overhead, row.Ceiling = 99, 0.03, 99
	r.judgeRows(row)
	var missed []string
	for _, g := range r.Goals {
		if !g.Pass {
			missed = append(missed, g.ID)
		}
	}
	if !slices.Equal(missed, []string{"overhead", "rows", "rows"}) {
		t.Errorf("missed %v of %+v", missed, r.Goals)
	}
}

// Bits that differ, or are not told, miss their goals; so do stale rows and bad scores.
func TestRunsAreJudged(t *testing.T) {
	of := func(w string) *run {
		return &run{summary: summary{Weights: strings.Repeat(w, 64), Predictions: strings.Repeat("0", 64)}}
	}
	var r report
	r.judge(bitsRow{}, of("a"), of("a"))
	r.judge(bitsRow{}, of("a"), of("b"))
	r.judge(bitsRow{}, of(""), of(""))
	if r.missed() != 2 || !r.Bits[0].Same {
		t.Errorf("%d missed of %+v", r.missed(), r.Goals)
	}
	r = report{}
	row := asyncRow{Bound: 1, Mean: 0.80}
	for range graphs {
		row.From = append(row.From, engine.Ages{{9}, {5, 5, 1}, {1, 1}, {1, 1}})
	}
	r.judgeAsync(row, 0.81)
	if r.missed() != 0 {
		t.Errorf("missed: %+v", r.Goals)
	}
	row.Mean = 0.79
	row.From[2] = engine.Ages{{9}, {9}, {9}, {5, 5, 1, 1, 0}}
	row.From[3] = engine.Ages{{9}, {9}, {0, 0}, {9}}
	r.judgeAsync(row, 0.81)
	missed := map[string]goal{}
	for _, g := range r.Goals {
		if !g.Pass {
			missed[g.ID] = g
		}
	}
	if g := missed["staleness"]; len(missed) != 3 || g.Value != 2 || g.Note != "server 2 of server 3" || missed["pairs"].Value != 15 {
		t.Errorf("missed: %+v", missed)
	}
}
