package pipeline

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"dorylus/engine"
)

// guard is an Exchanger that asks before it hands out, as those between processes do, and
// tries what no server may send.
type guard struct {
	engine.Exchanger
	mu      sync.Mutex
	check   func(*engine.RowMsg, int) error
	changed chan struct{} // closed by Expect

	asked int
	wrong []string
}

func (g *guard) Expect(check func(*engine.RowMsg, int) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.check = check
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *guard) Recv(ctx context.Context) (*engine.RowMsg, error) {
	m, err := g.Exchanger.Recv(ctx)
	if err != nil {
		return m, err
	}
	for {
		g.mu.Lock()
		check, changed := g.check, g.changed
		g.mu.Unlock()
		if check != nil {
			g.try(check, m)
			return m, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *guard) try(check func(*engine.RowMsg, int) error, m *engine.RowMsg) {
	rows := 0
	if m.Cols > 0 {
		rows = len(m.Data) / m.Cols
	}
	head := *m
	head.Data = nil
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	if err := check(&head, rows); err != nil {
		g.wrong = append(g.wrong, fmt.Sprintf("%+v of %d rows is refused: %v", head, rows, err))
	}
	for what, spoil := range map[string]func(m *engine.RowMsg, rows *int){
		"more rows":               func(_ *engine.RowMsg, n *int) { *n = 1 << 30 },
		"another row":             func(_ *engine.RowMsg, n *int) { *n++ },
		"wider rows":              func(m *engine.RowMsg, _ *int) { m.Cols++ },
		"an interval of its own":  func(m *engine.RowMsg, _ *int) { m.From = m.To },
		"an interval of nobody":   func(m *engine.RowMsg, _ *int) { m.Interval = 1 << 20 },
		"a negative interval":     func(m *engine.RowMsg, _ *int) { m.Interval = -1 },
		"an interval of a third":  func(m *engine.RowMsg, _ *int) { m.From = 3 - m.From - m.To },
		"a server that is not":    func(m *engine.RowMsg, _ *int) { m.From = 3 },
		"a server below 0":        func(m *engine.RowMsg, _ *int) { m.From = -1 },
		"a step that is not":      func(m *engine.RowMsg, _ *int) { m.Step = 1 << 10; m.Finished = false },
		"a step that keeps still": func(m *engine.RowMsg, _ *int) { m.Step = 0; m.Finished = false },
		"a negative step":         func(m *engine.RowMsg, _ *int) { m.Step = -1; m.Finished = false },
	} {
		bad, n := head, rows
		spoil(&bad, &n)
		if check(&bad, n) == nil {
			g.wrong = append(g.wrong, fmt.Sprintf("%s is let in: %+v of %d rows, where %+v of %d came", what, bad, n, head, rows))
		}
	}
}

// What comes in a run is what is expected, and nothing else is.
func TestOnlyWhatIsExpectedIsLetIn(t *testing.T) {
	for name, set := range map[string]func(*Options){
		"gcn": func(*Options) {},
		"gat, batch norm, async": func(o *Options) {
			m := o.Config
			o.Config = engine.DefaultConfig("gat")
			o.Config.Epochs, o.Config.Threads, o.Config.Intervals = 3, m.Threads, m.Intervals
			o.Config.Norm, o.Config.Layers, o.Config.Pipeline, o.Config.Staleness = "batch", 3, "async", 1
		},
	} {
		var guards []*guard
		trainPartitioned(t, partitioned{parts: 3, seed: 1, tune: func(c *Cluster) {
			g := &guard{Exchanger: c.Exchange, changed: make(chan struct{})}
			c.Exchange = g
			guards = append(guards, g)
		}}, func() Options { return options(t, set) })
		for rank, g := range guards {
			if g.asked == 0 {
				t.Errorf("%s: nothing came to partition %d", name, rank)
			}
			for _, w := range g.wrong[:min(len(g.wrong), 5)] {
				t.Errorf("%s, partition %d: %s", name, rank, w)
			}
			if g.check != nil {
				t.Errorf("%s: partition %d expects rows after the run", name, rank)
			}
		}
	}
}
