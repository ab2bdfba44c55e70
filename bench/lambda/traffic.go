package main

import (
	"fmt"
	"slices"
	"strings"
)

// traffic is what a training epoch moves between the graph server and its workers, in
// bytes.
type traffic struct {
	InputDropout float64 `json:"input_dropout"`
	// Naive, Saved and Planned are worked out from the program: each idea takes off what
	// the ones before it have left, in the order of causes; below 0, it adds.
	Naive   int64            `json:"naive_bytes"`
	Saved   map[string]int64 `json:"saved_bytes"`
	Planned int64            `json:"planned_bytes"`
	// Counted are those of the streams, heads of messages included: what a run's epochs
	// but the first one have added, evenly. Codec is what compression takes off Planned.
	Counted int64   `json:"counted_bytes"`
	Codec   int64   `json:"saved_by_codec_bytes"`
	Factor  float64 `json:"times_less"`
	// Once a run: rows that stay with the workers, those of the evaluation included.
	Shards int64 `json:"shard_bytes_per_run"`
}

// causes is the order in which a run's event takes savings off; it is the order of the
// table, too. Causes that a newer engine adds come behind.
var causes = []string{"fusion", "residency", "rematerialisation", "order", "merging"}

const savedBy = "saved_by_"

// atLeast is how many times more the naive protocol has to move.
const atLeast = 4

// traffic compares the protocols without and with dropout of the inputs, which takes the
// gather of the features out of the epochs, or puts it in.
func (r *report) traffic(l *lab) error {
	for _, dropout := range []float64{0, 0.5} {
		flags := slices.Concat(l.onWorkers(), onGraph(l.intervals, dropout))
		one, err := l.train(1, flags...)
		if err != nil {
			return err
		}
		more, err := l.train(l.epochs, flags...)
		if err != nil {
			return err
		}
		t, err := epochTraffic(one.summary, more.summary, l.epochs-1)
		if err != nil {
			return err
		}
		t.InputDropout = dropout
		r.Traffic = append(r.Traffic, t)
		r.least("bytes", fmt.Sprintf("input dropout %v: naive / counted bytes of an epoch", dropout), t.Factor, atLeast,
			fmt.Sprintf("%s naive, %s planned, %s counted", megabytes(t.Naive), megabytes(t.Planned), megabytes(t.Counted)))
	}
	return nil
}

// epochTraffic is the traffic of an epoch, from a run of one epoch and another one of so
// many more.
func epochTraffic(one, more summary, epochs int) (traffic, error) {
	t := traffic{Naive: more.Wire["naive_epoch_bytes"], Planned: more.Wire["planned_epoch_bytes"], Saved: map[string]int64{}, Shards: more.Wire["shard_bytes"]}
	moved := func(s summary) int64 { return s.Wire["sent_bytes"] + s.Wire["received_bytes"] - s.Wire["shard_bytes"] }
	t.Counted = (moved(more) - moved(one)) / int64(epochs)
	if t.Planned <= 0 || t.Counted <= 0 {
		return t, fmt.Errorf("%d bytes an epoch are planned and %d counted: the summaries do not tell", t.Planned, t.Counted)
	}
	left := t.Naive
	for name, n := range more.Wire {
		if cause, ok := strings.CutPrefix(name, savedBy); ok {
			t.Saved[cause] = n
			left -= n
		}
	}
	if left != t.Planned {
		return t, fmt.Errorf("%d bytes naive less %v saved is %d, but %d are planned: a cause is missing", t.Naive, t.Saved, left, t.Planned)
	}
	t.Codec = t.Planned - t.Counted
	t.Factor = float64(t.Naive) / float64(t.Counted)
	return t, nil
}

// ordered are the causes of t, those known first.
func (t *traffic) ordered() []string {
	var known, others []string
	for _, c := range causes {
		if _, ok := t.Saved[c]; ok {
			known = append(known, c)
		}
	}
	for c := range t.Saved {
		if !slices.Contains(known, c) {
			others = append(others, c)
		}
	}
	slices.Sort(others)
	return append(known, others...)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
