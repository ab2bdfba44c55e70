package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// rowsRow is what ghost rows of an epoch take, on so many graph servers, in bytes: the
// difference between runs of several epochs and of one, so that what crosses once a run,
// such as the last evaluation, does not count.
type rowsRow struct {
	Graphs int `json:"graph_servers"`
	// Least is worked out from the edges: rows x width x 4. Ceiling is what check tells of
	// such a cut, in an epoch that computes every row.
	Least       int64 `json:"least_bytes"`
	RowsForward int64 `json:"rows_forward"`
	RowsBack    int64 `json:"rows_backward"`
	Width       int   `json:"width"`
	Ceiling     int64 `json:"check_bytes"`
	// Values are those that the servers have counted, rows x width x 4; Packed what the
	// codec makes of them; Framing what lies around them; Wire all that has gone over the
	// sockets between graph servers, with TLS, HTTP/2 and what they have agreed upon.
	Values  int64 `json:"value_bytes"`
	Packed  int64 `json:"packed_bytes"`
	Framing int64 `json:"framing_bytes"`
	Wire    int64 `json:"wire_bytes"`
	// Overhead is Wire beyond Least, as a share of it.
	Overhead float64 `json:"overhead"`
	Params   int64   `json:"parameter_bytes"` // of weights and gradients, both ways
}

// scaleRow is a run on so many graph servers.
type scaleRow struct {
	Graphs  int     `json:"graph_servers"` // 0: one process
	Threads int     `json:"threads"`       // of each
	Epoch   float64 `json:"epoch_seconds"` // the median
	// CPU is processor seconds of all servers from start to end, loading included; Wall
	// the seconds.
	CPU  float64 `json:"cpu_seconds_of_the_run"`
	Wall float64 `json:"seconds_of_the_run"`
	// Tasks are seconds in tasks of an epoch, of all servers together. Where threads are
	// more than processors, a task's seconds include those in which it has none.
	Tasks   map[string]float64 `json:"task_seconds_of_an_epoch"`
	Waiting float64            `json:"waiting_share"` // of the threads' time in training epochs: no task
	Peak    []int64            `json:"peak_memory_bytes"`
	Weights string             `json:"weights_sha256"`
}

// overhead is how much more than the least may cross.
const overhead = 0.03

// scale trains a graph convolutional network of width 128 on 1, 2 and 4 servers.
func (r *report) scale(l *lab) error {
	store := l.data
	if strings.HasPrefix(store, "synth:") {
		var err error
		if store, err = l.prepare("reddit-sized", l.data, "--split=random:66/10/24"); err != nil {
			return err
		}
	}
	flags := func(epochs int) []string {
		return []string{"--data=" + store, "--hidden=128", "--input-dropout=0", "--eval-every=1000000", "--wire-precision=fp32", fmt.Sprintf("--epochs=%d", epochs)}
	}
	alone, err := l.train(set{}, flags(l.epochs)...)
	if err != nil {
		return err
	}
	s := alone.summary
	r.Graph = graph{s.Dataset, s.Vertices, s.Edges}
	r.Scale = append(r.Scale, scaleOf(0, l.epochs, alone))
	for _, n := range []int{1, 2, 4} {
		more, err := l.train(set{n, 1}, flags(l.epochs)...)
		if err != nil {
			return err
		}
		r.Scale = append(r.Scale, scaleOf(n, l.epochs, more))
		r.holds("bits", fmt.Sprintf("%s, gcn, %d graph servers: the same bits", s.Dataset, n), more.hashes() == alone.hashes(), "")
		if n == 1 {
			continue
		}
		one, err := l.train(set{n, 1}, flags(1)...)
		if err != nil {
			return err
		}
		c, err := l.cut(store, n)
		if err != nil {
			return err
		}
		least, classes, err := countLeast(store, c)
		if err != nil {
			return err
		}
		r.judgeRows(rowsOf(n, l.epochs-1, one, more, least, classes, c))
	}
	process := float64(r.Scale[0].Peak[0])
	r.most("memory", "peak memory of 1 graph server, as a share of that of one process", float64(slices.Max(r.Scale[1].Peak))/process, 1.15, "")
	r.most("memory", "peak memory of the largest of 4 graph servers, as a share of that of one process", float64(slices.Max(r.Scale[len(r.Scale)-1].Peak))/process, 0.5, "")
	return nil
}

// rowsOf is the traffic of an epoch, from a run of one epoch and one of so many more.
func rowsOf(n, epochs int, one, more *run, least leastRows, width int, c cut) rowsRow {
	row := rowsRow{Graphs: n, Least: least.bytes(width), RowsForward: least.Forward, RowsBack: least.Backward, Width: width, Ceiling: int64(width) * c.GhostBytes}
	sum := func(of func(server) int64) int64 {
		total := int64(0)
		for i := range more.servers {
			total += of(more.servers[i]) - of(one.servers[i])
		}
		return total / int64(epochs)
	}
	row.Values = sum(func(s server) int64 { return s.RowValues })
	row.Packed = sum(func(s server) int64 { return s.RowBytes })
	row.Framing = sum(func(s server) int64 { return s.RowFraming })
	row.Wire = sum(func(s server) int64 { return s.Sent + s.Received })
	row.Params = sum(func(s server) int64 { return s.Params + s.ParamsRecv })
	row.Overhead = float64(row.Wire)/float64(row.Least) - 1
	return row
}

func (r *report) judgeRows(row rowsRow) {
	r.Rows = append(r.Rows, row)
	what := fmt.Sprintf("%d graph servers: ", row.Graphs)
	r.holds("rows", what+"the rows sent are those that the edges ask for", row.Values == row.Least, fmt.Sprintf("%d and %d bytes", row.Values, row.Least))
	r.holds("rows", what+"check predicts no fewer", row.Least <= row.Ceiling, fmt.Sprintf("%d and %d bytes", row.Ceiling, row.Least))
	r.most("overhead", what+"bytes on the wire beyond the least", row.Overhead, overhead, fmt.Sprintf("%d and %d bytes", row.Wire, row.Least))
}

func scaleOf(n, epochs int, of *run) scaleRow {
	s := of.summary
	row := scaleRow{Graphs: n, Threads: s.Threads, Epoch: s.EpochSeconds, CPU: of.cpu, Wall: of.wall, Tasks: map[string]float64{}, Weights: s.Weights}
	busy := 0.0
	for kind, seconds := range s.Tasks {
		if kind != "eval" && kind != "WU" {
			row.Tasks[kind] = seconds / float64(epochs)
			busy += row.Tasks[kind]
		}
	}
	row.Waiting = 1 - busy/(of.meanEpoch()*float64(max(n, 1)*s.Threads))
	for _, s := range of.servers {
		row.Peak = append(row.Peak, s.Peak)
	}
	if n == 0 {
		row.Peak = []int64{s.Peak}
	}
	return row
}

func (r *report) printRows(w io.Writer) {
	if len(r.Rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s: %d vertices, %d edges\n", r.Graph.Name, r.Graph.Vertices, r.Graph.Edges)
	fmt.Fprintln(w, "ghost rows of an epoch, MB\tleast\tcounted by servers\tpacked\tframing\ton the sockets\toverhead\tcheck: every row\tweights and gradients")
	for _, x := range r.Rows {
		mb := func(n int64) float64 { return float64(n) / 1e6 }
		fmt.Fprintf(w, "%d graph servers\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f %%\t%.3f\t%.3f\n", x.Graphs, mb(x.Least), mb(x.Values), mb(x.Packed), mb(x.Framing), mb(x.Wire), 100*x.Overhead, mb(x.Ceiling), mb(x.Params))
	}
}

func (r *report) printScale(w io.Writer) {
	if len(r.Scale) == 0 {
		return
	}
	kinds := slices.Sorted(maps.Keys(r.Scale[len(r.Scale)-1].Tasks))
	fmt.Fprintf(w, "\ngraph servers\ts an epoch\t%s\tno task\tCPU s of the run\ts of the run\tpeak MB of each\n", strings.Join(kinds, "\t"))
	for _, x := range r.Scale {
		name := fmt.Sprint(x.Graphs)
		if x.Graphs == 0 {
			name = "one process"
		}
		fmt.Fprintf(w, "%s\t%.2f", name, x.Epoch)
		for _, k := range kinds {
			fmt.Fprintf(w, "\t%.2f", x.Tasks[k])
		}
		var peaks []string
		for _, p := range x.Peak {
			peaks = append(peaks, fmt.Sprintf("%.0f", float64(p)/1e6))
		}
		fmt.Fprintf(w, "\t%.0f %%\t%.1f\t%.1f\t%s\n", 100*x.Waiting, x.CPU, x.Wall, strings.Join(peaks, " "))
	}
}
