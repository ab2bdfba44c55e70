package sink

import (
	"strings"
	"testing"

	"dorylus/engine"
)

// What several servers have moved is added up; a run that goes on adds to what was moved
// before, but its own plan of an epoch counts, and its own servers.
func TestServersAddUp(t *testing.T) {
	tally := NewTally()
	for segment := range 2 {
		tally.Event(engine.RunStart{FirstEpoch: segment})
		for rank := range 3 {
			tally.Event(engine.Wired{Sent: 10, Received: 1, Naive: 7})
			tally.Event(engine.ServerDone{Rank: rank, PeakMem: int64(200 - 50*segment - rank), RowValues: 40, RowBytes: 41, RowFraming: 1, ParamsSent: 3, ParamsReceived: 2})
		}
		tally.Event(engine.ServerDone{Role: engine.ParamRole, PeakMem: 20})
		tally.Event(engine.ServerDone{Role: engine.ParamRole, Rank: 1, PeakMem: 30})
		tally.Event(engine.RunDone{PeakMem: 100})
	}
	s := tally.Summary()
	if s.Wire.Sent != 60 || s.Wire.Received != 6 || s.Wire.Naive != 21 {
		t.Errorf("wire %+v, want 60 bytes sent, 6 received, 21 naive", s.Wire)
	}
	if len(s.Servers) != 5 || s.PeakMemory != 200 {
		t.Errorf("%d servers, at most %d bytes, want 5 and 200", len(s.Servers), s.PeakMemory)
	}
	want := "Servers    3 for the graph, 148 bytes of memory at least; rows of 120 bytes to each other in 126 bytes on the wire, 15 bytes to and from parameter servers\n" +
		"           2 for parameters, 30 bytes of memory at most\n"
	if !strings.Contains(s.Words(), want) {
		t.Errorf("in words\n%swant %q", s.Words(), want)
	}
}
