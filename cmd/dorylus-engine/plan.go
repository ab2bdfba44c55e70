package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dorylus/engine/cost"
	"dorylus/engine/pipeline"
	"dorylus/engine/sim/rates"
)

// planFlags are the flags that plan has besides those of train.
type planFlags struct {
	servers, network        string
	latency                 time.Duration
	params                  int
	memory                  bytesFlag
	gather, products, order float64
}

const planLong = `Plan says what a run would take on so many graph servers, before any is hired: bytes and messages,
seconds and dollars of an epoch and of the run, memory of the largest server, and the number of servers at
which gains stop. It trains nothing. A number of servers whose memory does not suffice is refused; if none
fits, plan exits 1.

The graph is cut as a run would cut it, and all rows that servers would send each other are found and counted.
The work of every task is counted by the program of the model itself. Then the scheduler of a real run, one
for each server, is driven by virtual time: tasks take cores, messages take links. So what waits for what is
that of a run; how long things take is a model. It takes the speed of each kind of work from a measurement of
a few seconds on this machine, all cores at work, or from --gather-speed, --product-speed and --value-speed.

What plan assumes, and says so: a vCPU of the instance is as fast as a processor here; the link's full
bandwidth, to all servers alike, for as long as it is used; 5 % of bytes and 200 bytes a message for the
headers of the network; a core that packs or unpacks 0.5 GB/s for encrypted links; servers in one zone, so
that traffic costs nothing; nobody is lost. Loading the data, and the last evaluation, are not in it.

A task is at least one block of rows (4096 on large graphs), so a graph has work for as many cores as it has
blocks, however many servers there are: this is often what ends the gains. prepare --block-rows=512 makes more.

With --mode=gpu a server computes on one GPU of its instance. Its rates are shares of the GPU's data sheet: an
estimate that no measurement has checked, marked as such.

How good it is: the bytes of rows are those that servers then send, to the byte (sync); memory was within 20 %
of the peaks measured; seconds of tasks and epochs on one server, on a machine that others kept busy, mostly
within a factor of 2. Seconds of several servers have not been compared with real ones.`

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Bytes, messages, time and dollars on 1 to 64 servers, before anything is hired",
		Long:  planLong,
		Example: `  dorylus-engine plan --data=mystore --hidden=128 --input-dropout=0
  dorylus-engine plan --data=mystore --servers=2,4,8 --instance=c7gn.2xlarge --network=25Gbit --json
  dorylus-engine plan --data=synth:sbm,vertices=100000,degree=50 --pipeline=async --staleness=1`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.resolve(cmd)
			if err != nil {
				return err
			}
			return a.plan(cmd.Context(), r, f)
		},
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&f.servers, "servers", "1,2,4,8,16,32,64", "`LIST` of numbers of graph servers")
	set.StringVar(&f.network, "network", "", "bandwidth of a server, each way, as 10Gbit or 800Mbit (default: the instance's baseline, else 10Gbit)")
	set.DurationVar(&f.latency, "latency", 100*time.Microsecond, "`TIME` from one server to another")
	set.IntVar(&f.params, "params", 1, "`N` parameter servers, on the first graph servers")
	set.Var(&f.memory, "memory", "of a server, as 16GiB (default: the instance's)")
	set.Float64Var(&f.gather, "gather-speed", 0, "`GB/s` at which a core gathers rows; the three speeds together replace the measurement")
	set.Float64Var(&f.products, "product-speed", 0, "`GFLOP/s` of a core in dense products")
	set.Float64Var(&f.order, "value-speed", 0, "`GB/s` at which a core reads and writes rows in order")
	for _, name := range []string{"servers", "network", "latency", "params", "memory", "gather-speed", "product-speed", "value-speed"} {
		inGroup(set.Lookup(name), groupCluster)
	}
	addSettings(cmd)
	set.Lookup("threads").Usage = "cores of each server; 0: the instance's vCPUs"
	for _, name := range []string{"out", "resume", "checkpoint-every", "task-events", "dry-run"} {
		set.Lookup(name).Hidden = true
	}
	return cmd
}

// plan works out and prints the plans.
func (a *app) plan(ctx context.Context, r *resolved, f planFlags) error {
	c := &r.Config
	if err := c.Validate(); err != nil {
		return usage(err)
	}
	p := &planner{c: c, f: f, lambda: c.Mode == "lambda"}
	if err := a.hardware(p); err != nil {
		return err
	}
	st, err := a.loadData(ctx, c, c.JSON)
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	defer st.Close()
	p.st = st
	if p.split, err = splitOf(st, c, 0); err == nil {
		err = pipeline.CheckData(st, p.split)
	}
	if err != nil {
		return err
	}
	report, err := p.run(ctx, func(text string) { a.note(c.JSON || c.Progress == "none", "%s", text) })
	if err != nil {
		return stoppedEarly(ctx, err)
	}
	if c.JSON {
		data, err := json.MarshalIndent(report, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(a.out, "%s\n", data)
		}
		return errors.Join(err, report.refusal())
	}
	_, err = fmt.Fprint(a.out, report.text())
	return errors.Join(err, report.refusal())
}

// hardware finds out what servers p is about, and what they cost.
func (a *app) hardware(p *planner) error {
	var err error
	if p.servers, err = counts(p.f.servers); err != nil {
		return usagef("--servers=%s: %w", p.f.servers, err)
	}
	if p.f.params < 1 {
		return usagef("--params=%d: at least 1 is needed", p.f.params)
	}
	if p.f.latency < 0 {
		return usagef("--latency=%v: it cannot be below 0", p.f.latency)
	}
	if speeds := []float64{p.f.gather, p.f.products, p.f.order}; slices.ContainsFunc(speeds, func(x float64) bool { return x != 0 }) {
		p.given = &rates.Speeds{Gather: p.f.gather * 1e9, Flops: p.f.products * 1e9, Values: p.f.order * 1e9}
		if err := p.given.Validate(); err != nil {
			return usagef("--gather-speed, --product-speed, --value-speed: give all three, above 0: %w", err)
		}
	}
	path, _ := a.pricesFile()
	if p.table, err = cost.Load(path); err != nil {
		return err
	}
	if p.instance = p.c.Instance; p.instance == "" {
		p.instance = cost.DefaultInstance(p.c.Mode)
	}
	p.bandwidth, p.cores = 1.25e9, p.c.Threads
	var x cost.Instance
	if p.instance != cost.Unpriced {
		x, err = p.table.Lookup(strings.TrimSuffix(p.instance, ":spot"))
		if err == nil { // refuses a spot price that is not known
			_, err = p.table.Price(cost.Servers{Graph: p.instance, Graphs: 1})
		}
		if err != nil {
			return usagef("--instance=%s: %w", p.instance, err)
		}
		if x.BaselineMbps > 0 {
			p.bandwidth = float64(x.BaselineMbps) * 1e6 / 8
		}
		if p.cores == 0 {
			p.cores = x.VCPUs
		}
		p.memory = int64(x.MemoryGiB * (1 << 30))
	}
	if p.c.Mode == "gpu" {
		if err := p.onGPUs(x); err != nil {
			return err
		}
	}
	if p.cores == 0 {
		return usagef("--instance=%s: say how many cores a server has, with --threads=N", p.instance)
	}
	if p.f.memory > 0 {
		p.memory = int64(p.f.memory)
	}
	if p.f.network != "" {
		if p.bandwidth, err = bandwidthOf(p.f.network); err != nil {
			return usagef("--network=%s: %w", p.f.network, err)
		}
	}
	p.c.Threads = p.cores
	return nil
}

// counts are the numbers of a list, ascending.
func counts(list string) ([]int, error) {
	var out []int
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 4096 {
			return nil, fmt.Errorf("%q is no number of servers from 1 to 4096; write 1,2,4", text)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// bandwidthOf is in bytes per second what is written in bits: 10Gbit, 800Mbit/s.
func bandwidthOf(text string) (float64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text)), "/s"), "bit")
	factor := 1.0
	for suffix, by := range map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12} {
		if rest, has := strings.CutSuffix(digits, suffix); has {
			digits, factor = rest, by
			break
		}
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil || !(x > 0) || x*factor > 1e15 {
		return 0, fmt.Errorf("it is no bandwidth; write 10Gbit or 800Mbit")
	}
	return x * factor / 8, nil
}
