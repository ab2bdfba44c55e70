package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"dorylus/cluster/pserver"
	"dorylus/cluster/rpc"
	"dorylus/engine/pipeline"
	"dorylus/kernels/devices"
)

// stopTime is how long a parameter server that was told to stop waits for the graph
// servers: it has told them, and they need it for their last checkpoint.
const stopTime = 100 * time.Second

// farewell is how long the answers to goodbyes may take to reach the graph servers. One
// that is cut off asks again for seconds.
const farewell = time.Second

// serveParam is a parameter server until all graph servers have said goodbye.
func (a *app) serveParam(ctx context.Context, s *seat, device string) (err error) {
	dev, err := devices.Open(device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	ps, err := pserver.NewServer(pserver.ServerConfig{
		Shard: s.Rank, Shards: len(s.Params), Graphs: len(s.Graphs), Addrs: s.Graphs, Run: s.attempt(), Device: dev, Join: s.flags.ready, Grace: s.flags.peer,
		PeakMemory: pipeline.PeakMemory,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ps.Close()) }()
	server, err := rpc.Listen(s.Self(), s.id, rpc.Options{Listener: s.listener})
	if err != nil {
		return err
	}
	ps.Handle(server)
	server.Serve()
	defer func() { err = errors.Join(err, server.Finish(farewell)) }()
	patient, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	early, heard := false, make(chan struct{})
	late := time.NewTimer(stopTime)
	late.Stop()
	stop := context.AfterFunc(ctx, func() {
		defer close(heard)
		if early = ps.Waiting(); early { // there is no run yet
			cancel(context.Cause(ctx))
			return
		}
		ps.Stop()
		late.Reset(stopTime)
	})
	ended := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-late.C:
			cancel(context.Cause(ctx))
		case <-ended:
		}
	})
	err = ps.Run(patient)
	if !stop() {
		<-heard
	}
	close(ended)
	waiting.Wait()
	late.Stop()
	var sig stopped
	var peer *rpc.PeerError
	switch told := errors.As(context.Cause(ctx), &sig); {
	case told && early:
		return stoppedError(sig, "before any graph server had joined", s.flags.again || s.flags.goOn)
	case told && err == nil:
		return stoppedError(sig, "after the graph servers had ended", true)
	case err == nil && ps.Unfinished():
		return &codedError{exitTryAgain, errors.New("the run was stopped before its end; it can go on from its last checkpoint")}
	case errors.As(err, &peer): // not by a fault of its own: whether to try again is for others to say
		return &codedError{exitTryAgain, err}
	}
	return err
}

// attempt is the name by which the servers of one attempt know each other.
func (s *seat) attempt() string { return rpc.Attempt(s.flags.job, s.Attempt) }
