package fleet

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/engine"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// deaf is a worker that does not hear what calls its tasks off.
type deaf struct{ *tap }

func (c deaf) Send(m *wire.Message) error {
	if m.Cancel != nil {
		return nil
	}
	return c.tap.Send(m)
}

// A worker whose task another one has done is told so: it is free at once, and what it
// holds stays of use. One that does not listen is cut off when its time is over, as ever.
func TestTheLoserOfAHedgeIsCalledOff(t *testing.T) {
	st, dev := tiny(t), device(t)
	want := train(t, options(t, st, dev, gat), nil)
	for _, listens := range []bool{true, false} {
		p := &inProcess{dev: dev, arrive: func(ctx context.Context, in worker.Invitation) error {
			wait(time.Duration(in.Worker)*10*time.Millisecond, ctx.Done()) // the first one gets the first task
			return nil
		}}
		var mu sync.Mutex
		lost, other := int64(0), int64(0) // the attempt whose results are lost, the one that replaces it
		p.wrap = func(in worker.Invitation, c *wire.PipeConn) conn {
			x := &tap{PipeConn: c, heard: func(last *wire.Task, m *wire.Message) fate {
				mu.Lock()
				defer mu.Unlock()
				if m.Result != nil && lost == 0 && in.Worker == 1 {
					lost = m.Result.ID
				}
				switch {
				case m.Result != nil && m.Result.ID == lost:
					return vanishes
				case m.Result != nil && in.Worker == 2 && other == 0:
					other = m.Result.ID
				case m.Result != nil && in.Worker == 2 && other != m.Result.ID && listens:
					return breaks // the first one has to go on
				}
				return arrives
			}}
			if listens {
				return x
			}
			return deaf{x}
		}
		out := scripted(t, st, quick(2), p, gat, nil)
		if out.err != nil {
			t.Fatal(out.err)
		}
		sameBits(t, "hedged", want, out.res)
		var cut []string
		for _, e := range all[engine.WorkerLeft](out.d) {
			if strings.Contains(e.Why, errSlow.Error()) {
				cut = append(cut, e.Why)
			}
		}
		if out.s.Hedges != 1 || out.s.Own != 0 {
			t.Errorf("it listens %v: %d hedges, %d tasks on own cores, want 1 and 0", listens, out.s.Hedges, out.s.Own)
		}
		// Both workers get the shard for training, the first one that for the evaluation.
		if listens && (out.s.Off != 1 || out.s.Shards != 3 || out.s.Workers != 2 || len(cut) > 0) {
			t.Errorf("%d tasks were called off, %d shards sent, %d workers came, cut off: %v; want 1, 3, 2, none", out.s.Off, out.s.Shards, out.s.Workers, cut)
		}
		if !listens && (out.s.Off != 0 || out.took > 10*time.Second) {
			t.Errorf("%d tasks were called off, it took %v", out.s.Off, out.took)
		}
	}
}
