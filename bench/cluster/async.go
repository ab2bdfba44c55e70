package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dorylus/engine"
)

// asyncRow is runs of four graph servers with bounded staleness, by seed.
type asyncRow struct {
	Data  string `json:"data"`
	Bound int    `json:"staleness_bound"` // -1: a sync run
	// Eager: idle cores never waited for fresh rows, --async-wait=0.
	Eager bool `json:"eager"`
	// Paused says that graph servers were stopped for a while, one after another.
	Paused   bool      `json:"paused"`
	Pauses   int       `json:"pauses"`
	Accuracy []float64 `json:"test_accuracy"` // after the epoch that is best in validation
	Mean     float64   `json:"mean_test_accuracy"`
	Epoch    float64   `json:"epoch_seconds"` // the mean of the runs' medians
	// From[r][s] counts the rows of graph server s that r has read in gathers, by their age
	// in epochs; a row is stale by its age less one.
	From []engine.Ages `json:"row_age_from"`
}

// graphs is how many graph servers the runs have.
const graphs = 4

// oldest is the greatest age of a row that r has read of s, for each r and s; -1 of none.
func (a *asyncRow) oldest() (pairs [graphs][graphs]int) {
	for r := range pairs {
		for s := range pairs[r] {
			pairs[r][s] = -1
			if r >= len(a.From) || s >= len(a.From[r]) {
				continue
			}
			for age, n := range a.From[r][s] {
				if n > 0 {
					pairs[r][s] = age
				}
			}
		}
	}
	return pairs
}

// points is by how many points async runs may be worse than sync ones.
const points = 1.5

// delayed is how many of the seeds are tried with pauses, too.
const delayed = 2

// async compares async runs of four graph servers with sync ones. Those of the first
// seeds are made again with pauses, and with pauses and no waiting: these use up the
// bound, and show what old rows do to the accuracy, which is not judged.
func (r *report) async(l *lab) error {
	for _, x := range []struct {
		name, file string
		epochs     int
	}{
		{"coauthor-cs", "coauthor-cs/ms_academic_cs.npz", 60},
		{"amazon-photo", "amazon-photo/amazon_electronics_photo.npz", 100},
	} {
		store, err := l.stored(x.name, x.file)
		if err != nil {
			return err
		}
		flags := []string{"--data=" + store, "--hidden=64", fmt.Sprintf("--epochs=%d", x.epochs)}
		sync, err := l.seeded(asyncRow{Data: x.name, Bound: -1}, l.seeds, flags)
		if err != nil {
			return err
		}
		r.Async = append(r.Async, sync)
		for _, how := range []asyncRow{{}, {Paused: true}, {Paused: true, Eager: true}} {
			seeds := l.seeds
			if how.Paused {
				seeds = min(seeds, delayed)
			}
			for _, bound := range []int{0, 1, 3} {
				row := how
				row.Data, row.Bound = x.name, bound
				row, err := l.seeded(row, seeds, flags)
				if err != nil {
					return err
				}
				r.Async = append(r.Async, row)
				r.judgeAsync(row, mean(sync.Accuracy[:seeds]))
			}
		}
	}
	return nil
}

func (r *report) judgeAsync(row asyncRow, sync float64) {
	what := fmt.Sprintf("%s, S=%d", row.Data, row.Bound)
	if row.Paused {
		what += ", delayed"
		if row.Eager {
			what += ", never waiting"
		}
		r.least("delays", what+": pauses of a graph server", float64(row.Pauses), 10, "")
	}
	if !row.Eager {
		r.most("accuracy", what+": points below sync runs", 100*(sync-row.Mean), points, fmt.Sprintf("%.2f %% and %.2f %%", 100*row.Mean, 100*sync))
	}
	// An age of 0 is a row of the same epoch, or of an evaluation; one of 1 what the
	// bound does not count. Each pair of servers has to keep the bound, and to have told.
	told, worst, by, of := 0, -1, 0, 0
	for reader, sources := range row.oldest() {
		for source, age := range sources {
			if age >= 0 {
				told++
			}
			if age > worst {
				worst, by, of = age, reader, source
			}
		}
	}
	r.least("pairs", what+": pairs of graph servers that have told what they read", float64(told), graphs*graphs, "")
	r.most("staleness", what+": the oldest row that a graph server has read of another, in epochs, less one", float64(max(0, worst-1)), float64(row.Bound), fmt.Sprintf("server %d of server %d", by, of))
}

// seeded makes the runs of a row.
func (l *lab) seeded(row asyncRow, seeds int, flags []string) (asyncRow, error) {
	if row.Bound >= 0 {
		flags = slices.Concat(flags, []string{"--pipeline=async", fmt.Sprintf("--staleness=%d", row.Bound)})
	}
	if row.Eager {
		flags = append(flags, "--async-wait=0")
	}
	for seed := range seeds {
		var p *pauser
		var meanwhile func(int, <-chan struct{})
		if row.Paused {
			p = newPauser(uint64(seed))
			meanwhile = p.work
		}
		got, err := l.trainWhile(set{graphs, 2}, meanwhile, slices.Concat(flags, []string{fmt.Sprintf("--seed=%d", seed)})...)
		if err == nil && p != nil {
			err = p.err
		}
		if err != nil {
			return row, err
		}
		if p != nil {
			row.Pauses += p.count
		}
		row.Accuracy = append(row.Accuracy, got.summary.TestAcc)
		row.Epoch += got.summary.EpochSeconds / float64(seeds)
		for rank, s := range got.servers {
			if rank == len(row.From) {
				row.From = append(row.From, nil)
			}
			row.From[rank] = row.From[rank].Add(s.From)
		}
	}
	row.Mean = mean(row.Accuracy)
	return row, nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func (r *report) printAsync(w io.Writer) {
	if len(r.Async) == 0 {
		return
	}
	fmt.Fprintln(w, "\nfour graph servers\tpipeline\tseeds\ttest accuracy\tms an epoch\tpauses\trows read of age 0, 1, 2, ...\toldest of each source / by reader")
	for _, a := range r.Async {
		how := "sync"
		if a.Bound >= 0 {
			how = fmt.Sprintf("S=%d", a.Bound)
		}
		if a.Paused {
			how += ", delayed"
		}
		if a.Eager {
			how += ", never waiting"
		}
		var all engine.Ages
		for _, from := range a.From {
			all = all.Add(from)
		}
		var pairs []string
		for _, sources := range a.oldest() {
			pairs = append(pairs, strings.Trim(fmt.Sprint(sources), "[]"))
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.2f %%\t%.0f\t%d\t%d\t%s\n", a.Data, how, len(a.Accuracy), 100*a.Mean, 1000*a.Epoch, a.Pauses, all.Total(), strings.Join(pairs, " / "))
	}
}
