package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"dorylus/cluster/member"
	"dorylus/engine"
)

// A server's reads are its own, the leader's without those that it hears of.
func TestReportersCountTheirOwnReads(t *testing.T) {
	var all []*reporter
	for rank := range 2 {
		all = append(all, newReporter(&seat{Membership: member.Membership{Role: member.Graph, Rank: rank}}, &billed{}))
	}
	for rank, r := range all {
		for range 2 {
			r.Event(engine.TaskDone{Name: "GA", Age: []int64{5, int64(rank)}, AgeFrom: engine.Ages{{2}, {3, int64(rank)}}})
			r.Event(engine.TaskDone{Name: "AV"})
		}
	}
	if err := all[1].sums.Close(); err != nil {
		t.Fatal(err)
	}
	if err := all[0].hear(1, append(make([]byte, 16), all[1].lines.Bytes()...)); err != nil {
		t.Fatal(err)
	}
	for rank, r := range all {
		if len(r.ages) != 2 || !slices.Equal(r.ages[0], []int64{4}) || !slices.Equal(r.ages[1], []int64{6, 2 * int64(rank)}) {
			t.Errorf("server %d has read %v", rank, r.ages)
		}
	}
}

// Of an async run on several servers the summary tells, pair by pair, how old the rows were
// that one has read of the other: all that were read, none older than the bound.
func TestLaunchLocalTellsOfPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it runs many processes")
	}
	ownTemp(t)
	dir := t.TempDir()
	r := call(t, dir, nil, "launch", "local", "--servers=3", "--out=RUN", "--pipeline=async", "--staleness=1", "--epochs=12", "--hidden=8", "--json", "--progress=none")
	if r.code != exitDone || r.err != "" {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	var s struct {
		RowAge  map[int]int64 `json:"row_age"`
		Servers []struct {
			Role string      `json:"role"`
			From engine.Ages `json:"row_age_from"`
		} `json:"servers"`
	}
	if err := json.Unmarshal([]byte(r.out), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Servers) != 4 || s.Servers[3].Role != "param" {
		t.Fatalf("servers %+v, want 3 for the graph and then one for parameters", s.Servers)
	}
	sum := map[int]int64{}
	for reader, server := range s.Servers[:3] {
		if len(server.From) != 3 {
			t.Fatalf("server %d has read of %d servers: %v", reader, len(server.From), server.From)
		}
		for source, ages := range server.From {
			if len(ages) == 0 || len(ages) > 3 {
				t.Errorf("server %d has read rows of server %d of ages %v, want some, up to 2", reader, source, ages)
			}
			for age, n := range ages {
				sum[age] += n
			}
		}
	}
	for age := range 3 {
		if sum[age] != s.RowAge[age] {
			t.Errorf("by pair %v rows were read, by age alone %v", sum, s.RowAge)
			break
		}
	}
	if report := mustRun(t, dir, "report", "RUN"); !strings.Contains(report, `reader \ source`) {
		t.Errorf("the report has no table of pairs:\n%s", report)
	}
}
