package sink

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
)

// pairEvents is a run of servers; reader r has read of source s what ages says.
func pairEvents(pipeline string, servers int, ages func(reader, source int) []int64) []engine.Event {
	events := []engine.Event{engine.RunStart{Pipeline: pipeline, Staleness: 1, Partitions: servers}}
	for rank := range servers {
		var from engine.Ages
		for source := range servers {
			from = append(from, ages(rank, source))
		}
		events = append(events,
			engine.TaskDone{Name: "GA", Age: from.Total(), AgeFrom: from},
			engine.ServerDone{Rank: rank, RowAgeFrom: from})
	}
	return append(events, engine.RunDone{Reason: "epochs"})
}

// The table has readers in rows and sources in columns, and survives the file of events.
func TestPairsOfServers(t *testing.T) {
	events := pairEvents("async", 3, func(reader, source int) []int64 {
		switch {
		case reader == source:
			return []int64{7}
		case reader == 2:
			return []int64{}
		case source == 1:
			return []int64{1000, 2, 1, 0}
		}
		return []int64{1, 3}
	})
	const want = `
Age of the oldest row that a server has read of each, in epochs, and % of age 0/1/...
  reader \ source     0           1       2
                0  0: 100  2: >99/<1/<1  1: 25/75
                1  1: 25/75       0: 100  1: 25/75
                2        -            -    0: 100
`
	var file bytes.Buffer
	j := NewJSONL(&file, false, nil)
	send(j, events...)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(file.String(), `"row_age_from":[[1,3],[7],[1,3]]`) {
		t.Errorf("the events have not what server 1 has read:\n%s", file.String())
	}
	again := NewTally()
	if err := ReadEvents(&file, again); err != nil {
		t.Fatal(err)
	}
	s := again.Summary()
	var lines []string
	for line := range strings.Lines(want[1:]) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for what, text := range map[string]string{"words": s.Words(), "tables": again.Tables()} {
		var got []string
		for line := range strings.Lines(text) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if !strings.Contains(strings.Join(got, "\n"), strings.Join(lines, "\n")) {
			t.Errorf("%s\n%s\nwant%s", what, text, want)
		}
	}
	var sum int64
	for _, server := range s.Servers {
		for _, n := range server.RowAgeFrom.Total() {
			sum += n
		}
	}
	var all int64
	for _, n := range s.RowAge {
		all += n
	}
	if sum != all || all == 0 {
		t.Errorf("%d reads by pair, %d in all", sum, all)
	}
	with := s
	with.Servers = append(slices.Clone(s.Servers), engine.ServerDone{Role: engine.ParamRole})
	if a, b := s.pairs(""), with.pairs(""); a != b {
		t.Errorf("with a parameter server the pairs are\n%swithout\n%s", b, a)
	}
	sync := summarise(pairEvents("sync", 3, func(int, int) []int64 { return []int64{1} })...)
	if sync.pairs("") != "" {
		t.Errorf("a sync run shows pairs:\n%s", sync.pairs(""))
	}
}

// Of many servers the worst pair is named, not the one the other way round.
func TestWorstPairOfManyServers(t *testing.T) {
	s := summarise(pairEvents("async", pairColumns+1, func(reader, source int) []int64 {
		if reader == 2 && source == 5 {
			return []int64{1, 0, 4}
		}
		return []int64{3, 1}
	})...)
	const want = "The oldest row was 2 epochs old, read by server 2 of server 5; summary.json has all 81 pairs that read\n"
	if got := s.pairs(""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.Contains(s.Words(), want) {
		t.Errorf("in words\n%s", s.Words())
	}
}
