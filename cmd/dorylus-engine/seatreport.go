package main

import (
	"bytes"
	"errors"
	"fmt"

	"dorylus/cluster/node"
	"dorylus/cluster/pserver"
	"dorylus/engine"
	"dorylus/engine/pipeline"
	"dorylus/engine/sink"
)

// reporter keeps of a graph server's events what the leader has to know at the end: sums
// of its tasks, the bills of its Lambda workers, what it has moved. On the leader, whose
// events are told as they come, it keeps nothing.
type reporter struct {
	seat  *seat
	to    engine.Listener
	lines bytes.Buffer
	sums  *sink.JSONL
	bad   error

	node   *node.Node
	params *pserver.Client
	// settle ends what would only be billed later; nil: nothing.
	settle func(l engine.Listener) error
}

// newReporter passes all events on to l.
func newReporter(s *seat, l engine.Listener) *reporter {
	r := &reporter{seat: s, to: l}
	r.sums = sink.NewJSONL(&r.lines, false, func(err error) { r.bad = err })
	return r
}

// Event implements engine.Listener.
func (r *reporter) Event(e engine.Event) {
	r.to.Event(e)
	if r.seat.leads() {
		return
	}
	switch e.(type) {
	case engine.TaskDone, engine.LambdaUsed, engine.Moved, engine.Wired:
		r.sums.Event(e)
	}
}

// report is what this server has to say in the end, as lines of events.
func (r *reporter) report() ([]byte, error) {
	if r.settle != nil && !r.seat.leads() { // the leader hears of its own bills whenever they come
		if err := r.settle(r); err != nil {
			return nil, err
		}
	}
	done := r.done()
	if r.seat.leads() {
		r.to.Event(done)
		return nil, nil
	}
	r.sums.Event(done)
	if err := errors.Join(r.sums.Close(), r.bad); err != nil {
		return nil, fmt.Errorf("report to graph server 0: %w", err)
	}
	return r.lines.Bytes(), nil
}

func (r *reporter) done() engine.ServerDone {
	d := engine.ServerDone{Rank: r.seat.Rank, Address: r.seat.Self(), PeakMem: pipeline.PeakMemory()}
	moved := r.node.Counters()
	for p := range engine.Passes {
		sent, _ := moved.Rows.Total(engine.Pass(p))
		d.RowValues += sent.Values
		d.RowBytes += sent.Payload
		d.RowFraming += sent.Framing
	}
	for _, t := range moved.Sockets {
		d.Sent += t.Sent
		d.Received += t.Received
	}
	if r.params != nil {
		c := r.params.Counters()
		d.ParamsSent, d.ParamsReceived = c.Sent, c.Received
	}
	return d
}

// hear takes what another server has said.
func (r *reporter) hear(rank int, report []byte) error {
	return sink.ReadEvents(bytes.NewReader(report), r.to)
}
