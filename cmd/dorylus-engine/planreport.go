package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"dorylus/engine/cost"
)

// planReport is what plan says: the object of --json.
type planReport struct {
	Mode     string `json:"mode"`
	Model    string `json:"model"`
	Dataset  string `json:"dataset"`
	Vertices int    `json:"vertices"`
	Edges    int64  `json:"edges"`
	Epochs   int    `json:"epochs"`
	Pipeline string `json:"pipeline"`
	Instance string `json:"instance"`
	Cores    int    `json:"cores"`
	Memory   int64  `json:"memory_bytes,omitempty"`
	// GPUMemory is what may be used of a GPU; Estimated says that no rate was measured.
	GPUMemory int64      `json:"gpu_memory_bytes,omitempty"`
	Estimated bool       `json:"estimated,omitempty"`
	Gbit      float64    `json:"network_gbit"`
	Latency   float64    `json:"latency_seconds"`
	Params    int        `json:"parameter_servers"`
	Plans     []*planRow `json:"plans"`
	// GainsStop is the number of servers beyond which an epoch becomes hardly shorter; 0: no
	// server fits. Why says what is in the way.
	GainsStop int    `json:"gains_stop_at"`
	Why       string `json:"why"`
	Cheapest  int    `json:"cheapest"`
	// Measured and Assumed are where the numbers come from.
	Measured []string `json:"measured"`
	Assumed  []string `json:"assumed"`
}

// planRow is the plan for a number of servers. Seconds and bytes are of an epoch, of all
// servers together, with its share of evaluations, but for TrainSeconds and EvalSeconds.
type planRow struct {
	Servers      int                `json:"servers"`
	Fits         bool               `json:"fits"`
	Memory       planMemory         `json:"memory_bytes"` // of the server that needs most
	Blocks       int                `json:"blocks"`
	Intervals    int                `json:"intervals"`
	EpochSeconds float64            `json:"epoch_seconds"`
	TrainSeconds float64            `json:"train_seconds"`
	EvalSeconds  float64            `json:"eval_seconds"` // of one evaluation
	StartSeconds float64            `json:"start_seconds"`
	RunSeconds   float64            `json:"run_seconds"`
	EpochUSD     *float64           `json:"epoch_usd"`
	RunUSD       *float64           `json:"run_usd"`
	SentBytes    int64              `json:"sent_bytes"`
	GhostBytes   int64              `json:"ghost_bytes"` // rows and gradients alone
	GhostRows    int64              `json:"ghost_rows"`  // of a training epoch
	Messages     int64              `json:"messages"`
	LambdaBytes  int64              `json:"lambda_bytes,omitempty"`
	Workers      int                `json:"lambda_workers,omitempty"`
	TaskSeconds  map[string]float64 `json:"task_seconds"` // of cores or workers
	PackSeconds  float64            `json:"message_seconds"`
	Waiting      []float64          `json:"waiting"`  // share of its cores' time, by server
	LinkUse      float64            `json:"link_use"` // of the busiest link
}

// planMemory is what a server needs, by part.
type planMemory struct {
	Total     int64 `json:"total"`
	Matrices  int64 `json:"matrices"`
	Constants int64 `json:"constants"`
	Edges     int64 `json:"edges"`
	Index     int64 `json:"index"`
	Store     int64 `json:"store"`
	Starting  int64 `json:"starting"`
	Other     int64 `json:"other"`
}

func (p *planner) newReport() *planReport {
	return &planReport{
		Mode: p.c.Mode, Model: p.cfg.String(), Dataset: p.st.Meta.Name, Vertices: p.st.Meta.Vertices, Edges: p.st.Meta.Edges, Epochs: p.c.Epochs,
		Pipeline: p.c.Pipeline, Instance: p.instance, Cores: p.cores, Memory: p.memory, GPUMemory: p.gpuMemory, Estimated: len(p.gpuText) > 1, Gbit: p.bandwidth * 8 / 1e9, Latency: p.f.latency.Seconds(), Params: p.f.params,
		Measured: []string{}, Assumed: []string{},
	}
}

// worthIt is how much shorter an epoch has to be for more servers to be a gain.
const worthIt = 0.9

// conclude says what the rows come to.
func (r *planReport) conclude(p *planner) {
	var best, next *planRow
	for _, row := range r.Plans {
		switch {
		case !row.Fits:
			continue
		case best == nil || row.EpochSeconds < worthIt*best.EpochSeconds:
			best, next = row, nil
		case next == nil:
			next = row
		}
		if row.RunUSD != nil && (r.Cheapest == 0 || *row.RunUSD < *r.row(r.Cheapest).RunUSD) {
			r.Cheapest = row.Servers
		}
	}
	if best != nil {
		r.GainsStop, r.Why = best.Servers, why(best, next, p.cores)
	}
	for _, k := range p.known {
		if k.Measured {
			r.Measured = append(r.Measured, k.Text())
		}
	}
	slices.Sort(r.Measured)
	source := "speeds of a core are those measured here; a vCPU is taken to be as fast"
	switch {
	case len(p.gpuText) > 1: // the first is where its rates are from
		source = p.gpuText[0]
	case p.given != nil:
		source = fmt.Sprintf("speeds of a core were given: gathers %v GB/s, products %v GFLOP/s, rows in order %v GB/s", p.f.gather, p.f.products, p.f.order)
	}
	r.Assumed = []string{
		source,
		fmt.Sprintf("%d cores and %s memory a server, %.4g Gbit/s each way to all alike, %v latency", p.cores, memoryText(p.memory), r.Gbit, p.f.latency),
		fmt.Sprintf("%.0f %% of bytes and %d bytes a message are headers; a core packs or unpacks %.1f GB/s; a task takes %.0f µs besides its work", 100*(1-linkShare), msgBytes, packSpeed/1e9, taskTime*1e6),
		"servers are in one zone, none is lost, loading the data takes no time",
	}
	for _, k := range p.known {
		if !k.Measured && p.given == nil {
			r.Assumed = append(r.Assumed, fmt.Sprintf("%v is as fast as what is like it", k.Key))
		}
	}
	slices.Sort(r.Assumed[4:])
	if n := len(p.gpuText); n > 0 {
		r.Assumed = append(r.Assumed, p.gpuText[n-1])
	}
	if p.lambda {
		r.Assumed = append(r.Assumed, fmt.Sprintf("Lambda workers of %d MB are held throughout, lose nothing, and move %.0f MB/s each", p.c.LambdaMemory, lambdaLane/1e6))
	}
	if p.c.Pipeline == "async" {
		r.Assumed = append(r.Assumed, "evaluations come between epochs; an async run overlaps them, and is faster")
	}
}

func (r *planReport) row(servers int) *planRow {
	return r.Plans[slices.IndexFunc(r.Plans, func(x *planRow) bool { return x.Servers == servers })]
}

// why is what keeps the next number of servers from being faster.
func why(best, next *planRow, cores int) string {
	if next == nil {
		return "the largest number asked for is still a gain"
	}
	mean := 0.0
	for _, w := range next.Waiting {
		mean += w / float64(len(next.Waiting))
	}
	switch {
	case next.Blocks < next.Servers*cores && next.LinkUse < 0.5:
		return fmt.Sprintf("the graph has %d blocks of rows, fewer than the %d cores of %d servers, which wait %.0f %% of their time", next.Blocks, next.Servers*cores, next.Servers, 100*mean)
	case next.LinkUse >= 0.5:
		return fmt.Sprintf("with %d servers the busiest link is in use for %.0f %% of an epoch", next.Servers, 100*next.LinkUse)
	}
	return fmt.Sprintf("with %d servers cores wait for each other and for messages %.0f %% of their time", next.Servers, 100*mean)
}

// refusal is the error of a plan in which no number of servers fits.
func (r *planReport) refusal() error {
	if r.GainsStop > 0 {
		return nil
	}
	last := r.Plans[len(r.Plans)-1]
	if r.GPUMemory > 0 && last.Memory.onDevice() > r.GPUMemory {
		return fmt.Errorf("no plan fits: with %d servers the GPU of the largest needs %s, of which %s can be used: ask for more servers, or an --instance with a larger GPU; a run would stream what does not fit, which is not planned",
			last.Servers, sizeText(last.Memory.onDevice()), sizeText(r.GPUMemory))
	}
	return fmt.Errorf("no plan fits: with %d servers the largest needs %s, and %s has %s: ask for more servers, or an --instance with more memory",
		last.Servers, sizeText(last.Memory.Total), r.Instance, sizeText(r.Memory))
}

func memoryText(n int64) string {
	if n == 0 {
		return "any"
	}
	return sizeText(n)
}

// text is the report for people.
func (r *planReport) text() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %s, on %s: %d vertices, %d edges; %d epochs, %s\n", r.Mode, r.Model, r.Dataset, r.Vertices, r.Edges, r.Epochs, r.Pipeline)
	if r.Estimated {
		fmt.Fprintln(&b, "ESTIMATE: times and dollars are computed from a data sheet; nothing like it was measured.")
	}
	fmt.Fprintf(&b, "Each server: %s, %d cores, %s memory, %.4g Gbit/s\n\n", r.Instance, r.Cores, memoryText(r.Memory), r.Gbit)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "servers\tepoch\tof it evaluation\tspeed-up\tsent an epoch\tmessages\tbusiest link\tcores wait\tmemory\t$ an epoch\t$ the run\thours\t")
	var first *planRow
	for _, x := range r.Plans {
		if !x.Fits {
			fmt.Fprintf(w, "%d\tdoes not fit\t\t\t\t\t\t\t%s\t\t\t\t\n", x.Servers, sizeText(x.Memory.Total))
			continue
		}
		if first == nil {
			first = x
		}
		mean := 0.0
		for _, s := range x.Waiting {
			mean += s / float64(len(x.Waiting))
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%.2f\t%s\t%d\t%.0f %%\t%.0f %%\t%s\t%s\t%s\t%.3g\t\n", x.Servers, timeText(x.EpochSeconds), timeText(x.EpochSeconds-x.TrainSeconds),
			first.EpochSeconds/x.EpochSeconds, sizeText(x.SentBytes), x.Messages, 100*x.LinkUse, 100*mean, sizeText(x.Memory.Total), usdText(x.EpochUSD), usdText(x.RunUSD), x.RunSeconds/3600)
	}
	w.Flush()
	if r.GainsStop > 0 {
		fmt.Fprintf(&b, "\nGains stop at %d: %s.", r.GainsStop, r.Why)
		if r.Cheapest > 0 {
			fmt.Fprintf(&b, " The cheapest run is on %d.", r.Cheapest)
		}
		best := r.row(r.GainsStop)
		fmt.Fprintf(&b, "\nWith %d, seconds of cores an epoch: %s.\n", r.GainsStop, secondsByTask(best))
		if best.Workers > 0 {
			fmt.Fprintf(&b, "%d Lambda workers; %s an epoch between them and their servers.\n", best.Workers, sizeText(best.LambdaBytes))
		}
	}
	for _, list := range []struct {
		what  string
		lines []string
	}{{"Measured here", r.Measured}, {"Assumed", r.Assumed}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(&b, "\n%s:\n  %s\n", list.what, strings.Join(list.lines, "\n  "))
		}
	}
	return b.String()
}

func secondsByTask(x *planRow) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(x.TaskSeconds)) {
		parts = append(parts, fmt.Sprintf("%s %.3g", name, x.TaskSeconds[name]))
	}
	if x.PackSeconds > 0 {
		parts = append(parts, fmt.Sprintf("messages %.3g", x.PackSeconds))
	}
	return strings.Join(parts, ", ")
}

func timeText(s float64) string {
	if s < 0.1 {
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

func usdText(x *float64) string {
	if x == nil {
		return "-"
	}
	return cost.FromUSD(*x).String()
}
