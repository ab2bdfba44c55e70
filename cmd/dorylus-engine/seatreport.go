package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

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
	bills bytes.Buffer // of all that this server has spent, of which told bytes were given
	spend *sink.JSONL
	told  int
	// held is what the Lambda invocations under way use, where it is news.
	held  *engine.LambdaHeld
	known map[int]int // at the leader: how many bytes of their bills others have given
	bad   error
	ages  engine.Ages // of the rows that this server has read, by who has them

	node   *node.Node
	params *pserver.Client
	// settle ends what would only be billed later; nil: nothing.
	settle func(l engine.Listener) error
}

// newReporter passes all events on to l.
func newReporter(s *seat, l engine.Listener) *reporter {
	r := &reporter{seat: s, to: l, known: map[int]int{}}
	r.sums = sink.NewJSONL(&r.lines, false, r.fail)
	r.spend = sink.NewJSONL(&r.bills, false, r.fail)
	return r
}

func (r *reporter) fail(err error) { r.bad = err }

// Event implements engine.Listener.
func (r *reporter) Event(e engine.Event) {
	if _, over := e.(engine.RunDone); over && r.seat.leads() { // all graph servers have spoken
		r.tellParams()
	}
	r.to.Event(e)
	if d, ok := e.(engine.TaskDone); ok {
		r.ages = r.ages.Add(d.AgeFrom)
	}
	if r.seat.leads() {
		return
	}
	switch e := e.(type) {
	case engine.LambdaUsed, engine.Moved:
		r.spend.Event(e)
	case engine.LambdaHeld:
		e.Server = r.seat.Rank
		r.held = &e // the newest is enough
	case engine.TaskDone, engine.Wired:
		r.sums.Event(e)
	}
}

// spent is what this server has spent since the last call, as lines of events: the leader
// is to know in time what --max-cost counts, and whatever becomes of this server. One that
// does not arrive, since the run was stopped meanwhile, is made good by the report, which
// has all of them again.
func (r *reporter) spent() ([]byte, error) { return r.billsFrom(r.told) }

func (r *reporter) billsFrom(lo int) ([]byte, error) {
	if r.seat.leads() {
		return nil, nil
	}
	if r.held != nil {
		r.spend.Event(*r.held)
		r.held = nil
	}
	if err := errors.Join(r.spend.Close(), r.bad); err != nil {
		return nil, fmt.Errorf("report to graph server 0: %w", err)
	}
	r.spend = sink.NewJSONL(&r.bills, false, r.fail)
	r.told = r.bills.Len()
	out := binary.LittleEndian.AppendUint64(nil, uint64(lo))
	out = binary.LittleEndian.AppendUint64(out, uint64(r.told-lo))
	return append(out, r.bills.Bytes()[lo:]...), nil
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
	all, err := r.billsFrom(0)
	return append(all, r.lines.Bytes()...), err
}

// tellParams tells of the parameter servers what the last snapshot has brought.
func (r *reporter) tellParams() {
	if r.params == nil {
		return
	}
	for rank, peak := range r.params.PeakMemory() {
		if peak == 0 {
			continue // it has not been asked, or does not know
		}
		r.to.Event(engine.ServerDone{Role: engine.ParamRole, Rank: rank, Address: r.seat.Params[rank], PeakMem: peak})
	}
}

func (r *reporter) done() engine.ServerDone {
	d := engine.ServerDone{Rank: r.seat.Rank, Address: r.seat.Self(), PeakMem: pipeline.PeakMemory(), RowAgeFrom: r.ages}
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
	if len(report) < 16 {
		return fmt.Errorf("%d bytes, want 16 or more", len(report))
	}
	lo, n, lines := binary.LittleEndian.Uint64(report), binary.LittleEndian.Uint64(report[8:]), report[16:]
	if n > uint64(len(lines)) || lo > math.MaxInt64-n {
		return fmt.Errorf("%d bytes of bills from %d on, in %d", n, lo, len(lines))
	}
	bills, rest := lines[:n], lines[n:]
	if have := uint64(r.known[rank]); lo <= have && have < lo+n { // else known already, or one before is missing
		if err := sink.ReadEvents(bytes.NewReader(bills[have-lo:]), r.to); err != nil {
			return err
		}
		r.known[rank] = int(lo + n)
	}
	return sink.ReadEvents(bytes.NewReader(rest), r.to)
}
