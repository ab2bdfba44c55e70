package sink

import (
	"strings"
	"testing"

	"dorylus/engine"
)

func TestTables(t *testing.T) {
	tally := NewTally()
	send(tally, script()...)
	const want = `  epoch    loss    train      val     test  seconds
      1  1.9000  90.00 %  50.00 %  40.00 %    10 ms
      2  1.5000  91.00 %  75.00 %  70.00 %    20 ms best
      3  1.2500  92.00 %  75.00 %  80.00 %    30 ms

  task  count    time    share    mean
    AV      3    6 ms  17.39 %    2 ms
    GA      3    9 ms  26.09 %    3 ms
   ∇GA      3  4.5 ms  13.04 %  1.5 ms
    WU      3    3 ms   8.70 %    1 ms
  eval      3   12 ms  34.78 %    4 ms
Epochs took 60 ms; 2 workers make 120 ms, of which training tasks and updates filled 18.75 %.

Age of the rows that gathers read, in epochs: 0: 15 (62.5 %), 1: 6 (25.0 %), 2: 3 (12.5 %)
Staleness of these rows, bound 1: 0: 21 (87.5 %), 1: 3 (12.5 %)
`
	compare(t, tally.Tables(), want)
}

func TestTablesOfALongRunAreShort(t *testing.T) {
	tally := NewTally()
	send(tally, start(1000, 0))
	for e := range 1000 {
		send(tally, engine.EpochDone{Epoch: e}, engine.Evaluated{Epoch: e, Val: 1 / float64(1+(e-333)*(e-333))})
	}
	got := tally.Tables()
	rows := strings.Count(got[:strings.Index(got, "\n\n")], "\n")
	if rows > tableRows+3 || !strings.Contains(got, "best") || !strings.Contains(got, "  1000 ") {
		t.Errorf("%d rows, or the best or last is missing:\n%s", rows, got)
	}
	if empty := NewTally().Tables(); !strings.Contains(empty, "No gathers") {
		t.Errorf("a run without events: %s", empty)
	}
}
