package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"dorylus/cluster/ghost"
	"dorylus/cluster/node"
	"dorylus/cluster/pserver"
	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/ckpt"
	"dorylus/engine/graph"
	"dorylus/engine/pipeline"
	"dorylus/kernels"
)

// mayDiffer are settings that each server has for itself. The data may lie elsewhere on
// each; what is in it may not differ.
var mayDiffer = []string{"data", "out", "resume", "json", "dry-run", "progress", "task-events", "threads", "runs", "instance", "max-cost", "spot-notice",
	"device", "gpu", "gpu-memory", "lambdas", "lambda-memory", "lambda-endpoint", "lambda-address", "lambda-fallback", "chaos", "split-file", "class-weights"}

// alike is what all graph servers must have the same, by names for people. The bits of a
// run depend on the instruction set.
func alike(c *engine.Config, id ckpt.Identity, device string) map[string]string {
	same := map[string]string{
		"kernels": device, "version": versionText(), "model and training": string(id.Config),
		"data": id.Dataset + " " + id.Fingerprint,
	}
	for _, s := range c.Settings() {
		if !slices.Contains(mayDiffer, s.Name) {
			same["--"+s.Name] = s.Text()
		}
	}
	return same
}

// join connects this graph server with all others of the run, and waits until they, and
// the parameter servers, are there. Graph server 0 shows who is.
func (s *seat) join(ctx context.Context, c *engine.Config, id ckpt.Identity, device string) (*node.Node, error) {
	t := &roll{w: s.w, shown: map[string]string{}}
	if !s.leads() || c.Progress == "json" || c.Progress == "none" {
		t.w = io.Discard
	}
	n, err := node.Join(ctx, node.Config{
		Rank: s.Rank, Graphs: s.Graphs, Identity: s.id, Job: s.attempt(), Settings: alike(c, id, device), WirePrecision: c.WirePrecision, Rows: ghost.Config{Await: true},
		ReadyTimeout: s.flags.ready, PeerTimeout: s.flags.peer, StallTimeout: s.flags.stall, GatherTimeout: s.flags.stall, Report: t.call, RPC: rpc.Options{Listener: s.listener},
	})
	if err != nil {
		return nil, s.lost(err)
	}
	if s.leads() {
		if err := s.awaitParams(ctx, n, t); err != nil {
			n.Fail(err)
			return nil, s.lost(errors.Join(err, n.Close()))
		}
		t.total(len(s.Graphs), len(s.Params))
	}
	return n, nil
}

// awaitParams waits until all parameter servers answer.
func (s *seat) awaitParams(ctx context.Context, n *node.Node, t *roll) error {
	ctx, cancel := context.WithTimeout(ctx, s.flags.ready)
	defer cancel()
	errs := make([]error, len(s.Params))
	var wg sync.WaitGroup
	for rank, addr := range s.Params {
		wg.Go(func() {
			who := rpc.Who{Role: rpc.Param, Rank: rank}
			conn, err := n.Dial(addr, who)
			if err == nil {
				err = rpc.Healthy(ctx, conn, "")
				_ = conn.Close()
			}
			if err != nil {
				errs[rank] = &rpc.PeerError{Who: who, Addr: addr, Awaited: fmt.Sprintf("that it is ready, for %v", s.flags.ready), Err: err}
			}
			t.row(node.Row{Role: rpc.Param, Rank: rank, Addr: addr, Ready: err == nil, State: rpc.Text(err)})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// roll shows who is there, each server anew when something about it has changed.
type roll struct {
	mu    sync.Mutex
	w     io.Writer
	shown map[string]string
}

func (t *roll) call(table []node.Row) {
	for _, r := range table {
		t.row(r)
	}
}

func (t *roll) row(r node.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := r.State
	switch {
	case r.Ready:
		state = "ready"
	case state == "":
		state = "not there yet"
	}
	name := fmt.Sprintf("%s %d", r.Role, r.Rank)
	if t.shown[name] == state {
		return
	}
	t.shown[name] = state
	fmt.Fprintf(t.w, "  %-10s %-24s %s\n", name, r.Addr, state)
}

// total says that all have come.
func (t *roll) total(graphs, params int) {
	fmt.Fprintf(t.w, "All servers are ready: %d for the graph, %d for parameters.\n", graphs, params)
}

// train is pipeline.Train on this server's partition, together with all others, which have
// the same kernels, called device. bill, if
// not nil, ends the backend and tells of its last bills.
func (s *seat) train(ctx context.Context, opt pipeline.Options, id ckpt.Identity, device string, bill func(engine.Listener) error) (res *pipeline.Result, err error) {
	opt.Store.Trim() // the fingerprint has touched all of it
	n, err := s.join(ctx, &opt.Config, id, device)
	if err != nil {
		return nil, err
	}
	defer func() {
		n.Fail(err) // nil is none
		err = errors.Join(err, n.Close())
	}()
	r := newReporter(s, opt.Listener)
	r.node, r.settle = n, bill
	opt.Listener = r
	if !s.leads() {
		opt.Stop = nil
	}
	opt.Cluster = &pipeline.Cluster{
		Group: n.Group(), Exchange: n.Exchanger(), Blocks: graph.Partition(opt.Store, opt.Split.Train, len(s.Graphs)),
		Spent: r.spent, Report: r.report, Hear: r.hear,
		Connect: func(ctx context.Context, j pipeline.ParamJob) (pipeline.Server, error) {
			c, err := s.connect(ctx, j, opt.Config.Staleness, func() { n.Group().Stop("interrupted") })
			if err != nil {
				return nil, err
			}
			r.params = c
			return c, nil
		},
	}
	if res, err = pipeline.Train(ctx, opt); err != nil {
		return res, s.lost(err)
	}
	return res, nil
}

// connect joins the parameter servers. stop is called when one of them has to go.
func (s *seat) connect(ctx context.Context, j pipeline.ParamJob, staleness int, stop func()) (*pserver.Client, error) {
	return pserver.Connect(ctx, pserver.ClientConfig{
		Rank: s.Rank, Graphs: len(s.Graphs), Blocks: kernels.Span{Lo: j.Blocks.Lo, Hi: j.Blocks.Hi}, Intervals: j.Intervals,
		Params: j.Config, Ahead: staleness + 2, Run: s.attempt(), Addrs: s.Params, Identity: s.id,
		Join: s.flags.ready, Grace: s.flags.peer, Stop: stop,
	})
}
