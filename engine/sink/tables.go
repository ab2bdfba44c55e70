package sink

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"dorylus/engine"
	"dorylus/engine/metric"
)

// tableRows is about how many epochs a table shows.
const tableRows = 20

// Tables is what the events say in tables: the metric by epoch, classes and their
// confusions on the test rows, worker time by kind of task, staleness.
func (t *Tally) Tables() string {
	var b strings.Builder
	t.accuracyTable(&b)
	b.WriteByte('\n')
	if t.classes != nil {
		classTables(&b, t.classes)
		b.WriteByte('\n')
	}
	t.taskTable(&b)
	b.WriteByte('\n')
	t.stalenessTable(&b)
	return b.String()
}

func table(b *strings.Builder) *tabwriter.Writer {
	return tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// accuracyTable has a row for some of the epochs, the best and the last included.
func (t *Tally) accuracyTable(b *strings.Builder) {
	s := t.Summary()
	epochs := t.order()
	every := (len(epochs) + tableRows - 1) / tableRows
	if s.otherMetric() {
		fmt.Fprintf(b, "Train, val and test are %s.\n", s.Metric)
	}
	w := table(b)
	fmt.Fprintln(w, "epoch\tloss\ttrain\tval\ttest\tseconds\t")
	for i, e := range epochs {
		rec := t.epochs[e]
		if rec.run == nil || i%max(every, 1) != 0 && e != epochs[len(epochs)-1] && Number(e+1) != s.BestEpoch {
			continue
		}
		ev := engine.Evaluated{Train: math.NaN(), Val: math.NaN(), Test: math.NaN()}
		if rec.eval != nil {
			ev = *rec.eval
		}
		mark := ""
		if Number(e+1) == s.BestEpoch {
			mark = " best"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", e+1, digits(Number(rec.run.Loss)), percent(Number(ev.Train)),
			percent(Number(ev.Val)), percent(Number(ev.Test)), seconds(t.took(rec.run.Took)), mark)
	}
	w.Flush()
}

// took is a time, unless it is that of an emulated device.
func (t *Tally) took(x float64) Number {
	if t.emulated {
		return Number(math.NaN())
	}
	return Number(x)
}

// classTables has a line per class and, of one label a row, the confusions.
func classTables(b *strings.Builder, e *engine.Classes) {
	if !fits(e) {
		b.WriteString("The counts of the classes do not fit together: the events were edited.\n")
		return
	}
	fmt.Fprintf(b, "%s test rows by class, with the weights after epoch %d:\n", thousands(e.Rows), e.Epoch+1)
	if e.Confusion == nil {
		sets := metric.Sets{TP: e.TP, FP: e.FP, FN: e.FN, Exact: e.Exact, Rows: e.Rows}
		b.WriteString(sets.Table(e.Names))
		return
	}
	m := metric.Confusion{N: e.Confusion}
	fmt.Fprintf(b, "%s\n%s", m.Table(e.Names), m.Matrix(e.Names))
}

// fits says that there is a count for every class.
func fits(e *engine.Classes) bool {
	for _, row := range e.Confusion {
		if len(row) != len(e.Confusion) {
			return false
		}
	}
	return len(e.TP) == len(e.FP) && len(e.TP) == len(e.FN)
}

// taskTable is worker time by kind, and how much of the epochs it makes up.
func (t *Tally) taskTable(b *strings.Builder) {
	if t.emulated {
		fmt.Fprintf(b, "No times of tasks: %s.\n", engine.EmulatedNote)
		return
	}
	s := t.Summary()
	counts := map[string]int64{}
	epochTime, training, all := 0.0, 0.0, 0.0
	for _, rec := range t.epochs {
		for k, n := range rec.tasks.Count {
			counts[k] += n
		}
		if rec.run != nil {
			epochTime += rec.run.Took
			counts["WU"]++
		}
	}
	for k, x := range s.TaskSeconds {
		all += float64(x)
		if k != "eval" {
			training += float64(x)
		}
	}
	w := table(b)
	fmt.Fprintln(w, "task\tcount\ttime\tshare\tmean\t")
	for _, k := range SortedKinds(s.TaskSeconds) {
		x := s.TaskSeconds[k]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", k, thousands(counts[k]), seconds(x),
			percent(x/Number(all)), seconds(x/Number(counts[k])))
	}
	w.Flush()
	fmt.Fprintf(b, "Epochs took %s; %d workers make %s, of which training tasks and updates filled %s.\n",
		seconds(Number(epochTime)), s.Threads, seconds(Number(epochTime*float64(s.Threads))),
		percent(Number(training/(epochTime*float64(s.Threads)))))
}

// stalenessTable is the histogram of the rows that gathers read, of several servers by
// pair.
func (t *Tally) stalenessTable(b *strings.Builder) {
	s := t.Summary()
	if len(s.RowAge) == 0 {
		b.WriteString("No gathers were recorded.\n")
		return
	}
	fmt.Fprintf(b, "Age of the rows that gathers read, in epochs: %s\n", histogram(s.RowAge))
	fmt.Fprintf(b, "Staleness of these rows, bound %d: %s\n", s.Bound, histogram(s.Staleness))
	b.WriteString(s.pairs(""))
}
