package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"dorylus/cluster/ghost"
	"dorylus/cluster/member"
	"dorylus/cluster/node"
	"dorylus/cluster/rpc"
	"dorylus/engine/pipeline"
)

// servePredictCommand is one of several graph servers that predict together.
func (a *app) servePredictCommand() *cobra.Command {
	var f predictFlags
	s := serveFlags{alone: true}
	cmd := &cobra.Command{
		Use:   "predict",
		Short: "Be one of several graph servers that predict together: part of the graph",
		Long: `Predict is predict on several machines: each graph server computes its part of the graph, and server 0
writes the files. There are no parameter servers. Give all of them the same flags; only server 0 reads RUN,
and the others hear of its settings and weights. Each needs the data, if it lies elsewhere by --data.
See serve --help for how a server finds the others, and predict --help for what is written.`,
		Example: `  dorylus-engine serve predict --rank=0 --graphs=a:7070,b:7070 --certs=certs --run=RUN -o classes.npy
  srun -n 4 dorylus-engine serve predict --certs=certs --data=mystore --run=RUN --scores -o scores.npy`,
		Args: noArgs,
	}
	s.add(cmd.Flags())
	for _, name := range []string{"params", "continue"} {
		cmd.Flags().Lookup(name).Hidden = true
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		if s.control {
			controlled, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			go obey(cancel)
			ctx = controlled
		}
		if err := f.check(); err != nil {
			return err
		}
		switch {
		case s.params != "":
			return usagef("--params=%s: a prediction needs no parameter servers: leave it out", s.params)
		case s.goOn:
			return usagef("--continue: a prediction begins anew: leave it out")
		}
		return notPredicted(ctx, a.servePredict(ctx, &f, &s))
	}
	return cmd
}

// servePredict finds this server's place and predicts with the others.
func (a *app) servePredict(ctx context.Context, f *predictFlags, sf *serveFlags) (err error) {
	s, err := a.takeSeat(ctx, member.Graph, sf)
	if err != nil {
		return err
	}
	defer s.leave()
	a.local, a.mates = s.mates()
	var m *trainedModel
	if s.leads() { // before anybody is waited for
		if m, err = openModel(f); err != nil {
			return err
		}
	}
	t := &roll{w: s.w, shown: map[string]string{}}
	if !s.leads() || sf.quiet {
		t.w = io.Discard
	}
	n, err := node.Join(ctx, node.Config{
		Rank: s.Rank, Graphs: s.Graphs, Identity: s.id, Job: s.attempt(), Settings: map[string]string{"task": "predict", "version": versionText()},
		ReadyTimeout: sf.ready, PeerTimeout: sf.peer, StallTimeout: sf.stall, GatherTimeout: sf.stall, Report: t.call, RPC: rpc.Options{Listener: s.listener}, Rows: ghost.Config{Await: true},
	})
	if err != nil {
		return s.lost(err)
	}
	defer func() {
		n.Fail(err) // nil is none
		err = errors.Join(s.lost(err), n.Close())
	}()
	if m, err = m.share(ctx, n.Group()); err != nil {
		return err
	}
	return a.predictWith(ctx, f, m, &pipeline.Cluster{Group: n.Group(), Exchange: n.Exchanger()}, s.attempt())
}
