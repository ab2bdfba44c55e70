package ghost_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dorylus/cluster/clustertest"
	"dorylus/cluster/ghost"
	"dorylus/cluster/node"
	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/testkit"
	"dorylus/lambda/codec"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// message number n from one server to another: everything in it follows from the three.
func message(from, to, n int) *engine.RowMsg {
	r := rand.New(rand.NewPCG(uint64(from)<<32|uint64(to), uint64(n)))
	m := &engine.RowMsg{From: from, To: to, Pass: engine.Pass(n % 2), Interval: r.IntN(1000), Step: r.IntN(20), Epoch: n, Cols: 1 + r.IntN(40), Exact: n%3 == 0}
	switch r.IntN(5) {
	case 0:
		m.Finished, m.Cols = true, 0
	case 1: // no rows for this one
	default:
		m.Data = make([]float32, m.Cols*r.IntN(60))
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
			if r.IntN(3) == 0 {
				m.Data[i] = 0
			}
			if m.Exact { // such as references to rows, which are no numbers
				m.Data[i] = math.Float32frombits(uint32(r.IntN(1 << 20)))
			}
		}
	}
	return m
}

// same compares bits.
func same(a, b *engine.RowMsg) bool {
	x, y := *a, *b
	x.Data, y.Data = nil, nil
	return fmt.Sprintf("%+v", x) == fmt.Sprintf("%+v", y) && slices.EqualFunc(a.Data, b.Data, func(u, v float32) bool { return math.Float32bits(u) == math.Float32bits(v) })
}

// exchange sends count messages between all, and checks that each comes once, in its
// sender's order, as it was.
func exchange(ctx context.Context, xs []engine.Exchanger, count int, want func(from, to, n int) *engine.RowMsg) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for rank, x := range xs {
		wg.Go(func() {
			for n := range count {
				for to := range xs {
					if to == rank {
						continue
					}
					if err := x.Send(ctx, message(rank, to, n)); err != nil {
						cancel(fmt.Errorf("%d to %d: %w", rank, to, err))
						return
					}
				}
			}
		})
		wg.Go(func() {
			next := make([]int, len(xs))
			for range count * (len(xs) - 1) {
				m, err := x.Recv(ctx)
				if err != nil {
					cancel(fmt.Errorf("%d, having %v: %w", rank, next, err))
					return
				}
				if w := want(m.From, rank, next[m.From]); !same(m, w) {
					cancel(fmt.Errorf("graph server %d got message %d of %d as\n%+v, want\n%+v", rank, next[m.From], m.From, m, w))
					return
				}
				next[m.From]++
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return nil
}

func exchangers(c *clustertest.Cluster) []engine.Exchanger {
	var xs []engine.Exchanger
	for _, n := range c.Nodes {
		xs = append(xs, n.Exchanger())
	}
	return xs
}

func TestRowsArriveThroughTrouble(t *testing.T) {
	for _, o := range []struct {
		n, count int
		tls      bool
		chunk    int
		window   int64
	}{{2, 700, true, 1 << 20, 0}, {3, 250, false, 512, 40 << 10}, {4, 150, true, 512, 20 << 10}} {
		seeds := uint64(2)
		if testing.Short() {
			seeds = 1
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("n=%d,seed=%d", o.n, seed), func(t *testing.T) {
				testkit.Leaks(t)
				f := &clustertest.Faults{Seed: seed, CutRate: 0.01, TwiceRate: 0.03, DelayRate: 0.02, Delay: 300 * time.Microsecond, Shuffle: true}
				c := clustertest.Start(t, clustertest.Options{Graphs: o.n, TLS: o.tls, Faults: f, Tune: func(_ int, cfg *node.Config) {
					cfg.Rows.Chunk, cfg.Window = o.chunk, o.window
				}})
				check(t, exchange(clustertest.Context(t), exchangers(c), o.count, message))
				if d := f.Done(); d.Cuts == 0 || d.Twices == 0 || d.Delays == 0 || d.Shuffles == 0 {
					t.Errorf("too little trouble: %+v", d)
				}
				// What was sent and what came agree, whatever was sent again.
				var sent, received ghost.Count
				for _, n := range c.Nodes {
					for p := range engine.Passes {
						s, r := n.Counters().Rows.Total(engine.Pass(p))
						s.Waited, r.Waited = 0, 0
						sent.Messages, received.Messages = sent.Messages+s.Messages, received.Messages+r.Messages
						sent.Values, received.Values = sent.Values+s.Values, received.Values+r.Values
						sent.Chunks, received.Chunks = sent.Chunks+s.Chunks, received.Chunks+r.Chunks
					}
				}
				if want := int64(o.count * o.n * (o.n - 1)); sent != received || sent.Messages != want {
					t.Errorf("sent %+v, received %+v, want %d messages", sent, received, want)
				}
			})
		}
	}
}

func TestLocalIsTheSame(t *testing.T) {
	testkit.Leaks(t)
	for _, wire := range []codec.DType{codec.FP32, codec.BF16, codec.FP16} {
		ls, err := ghost.NewLocal(3, ghost.Config{Wire: wire, Chunk: 256}, 30<<10)
		check(t, err)
		var xs []engine.Exchanger
		for _, l := range ls {
			xs = append(xs, l)
		}
		c := clustertest.Start(t, clustertest.Options{Graphs: 3, Tune: func(_ int, cfg *node.Config) { cfg.WirePrecision, cfg.Rows.Chunk = wire.String(), 256 }})
		for _, xs := range [][]engine.Exchanger{xs, exchangers(c)} {
			check(t, exchange(clustertest.Context(t), xs, 60, func(from, to, n int) *engine.RowMsg { return rounded(t, message(from, to, n), wire) }))
		}
	}
}

// rounded is m as wire carries it.
func rounded(t *testing.T, m *engine.RowMsg, wire codec.DType) *engine.RowMsg {
	e, err := codec.NewEncoder(codec.Options{Wire: wire, Codec: codec.None})
	check(t, err)
	if len(m.Data) > 0 && !m.Exact {
		mat := matOf(m)
		check(t, codec.Decode(e.Append(nil, 0, mat), mat))
	}
	return m
}

func TestLocalWaitsAndEnds(t *testing.T) {
	testkit.Leaks(t)
	ls, err := ghost.NewLocal(2, ghost.Config{}, 1000)
	check(t, err)
	m := &engine.RowMsg{From: 0, To: 1, Cols: 10, Data: make([]float32, 1000)}
	check(t, ls[0].Send(t.Context(), m)) // larger than the window: alone
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := ls[0].Send(ctx, m); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second: %v", err)
	}
	if _, err := ls[0].Recv(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing there: %v", err)
	}
	boom := errors.New("boom")
	ls[1].Leave()
	check(t, ls[0].Send(t.Context(), m))
	if _, err := ls[1].Recv(t.Context()); err == nil {
		t.Error("a server that has left receives")
	}
	ls[1].Fail(boom)
	if _, err := ls[0].Recv(t.Context()); !errors.Is(err, boom) {
		t.Errorf("after a failure: %v", err)
	}
	if err := ls[0].Send(t.Context(), m); !errors.Is(err, boom) {
		t.Errorf("after a failure: %v", err)
	}
}

func TestSendRefusesNonsense(t *testing.T) {
	testkit.Leaks(t)
	c := clustertest.Start(t, clustertest.Options{Graphs: 2, Tune: func(_ int, cfg *node.Config) { cfg.Rows.Max = 4000 }})
	for says, m := range map[string]*engine.RowMsg{
		"from 1 to 0: this is graph server 0": {From: 1, To: 0},
		"from 0 to 0: this":                   {From: 0, To: 0},
		"from 0 to 2: this":                   {From: 0, To: 2},
		"3 values are no rows of 2":           {To: 1, Cols: 2, Data: make([]float32, 3)},
		"3 values are no rows of 0":           {To: 1, Data: make([]float32, 3)},
		"it has 1 values, want none":          {To: 1, Finished: true, Cols: 1, Data: make([]float32, 1)},
		"need 4004 bytes, at most 4000":       {To: 1, Cols: 1, Data: make([]float32, 1001)},
		"a number in it is out of range":      {To: 1, Step: -1},
	} {
		if err := c.Nodes[0].Exchanger().Send(t.Context(), m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %q", err, says)
		}
	}
}

// What a receiver does not want ends the run, and names the sender.
func TestUnwantedRowsAreRefused(t *testing.T) {
	testkit.Leaks(t)
	c := clustertest.Start(t, clustertest.Options{Graphs: 2})
	c.Nodes[1].Exchanger().(engine.Expecter).Expect(func(m *engine.RowMsg, rows int) error {
		if m.From != 0 || m.To != 1 || rows != 3 || m.Data != nil {
			return fmt.Errorf("want 3 rows")
		}
		return nil
	})
	x := c.Nodes[0].Exchanger()
	check(t, x.Send(t.Context(), &engine.RowMsg{To: 1, Step: 2, Interval: 4, Epoch: 6, Cols: 2, Data: make([]float32, 6)}))
	check(t, x.Send(t.Context(), &engine.RowMsg{To: 1, Step: 3, Interval: 4, Epoch: 6, Cols: 2, Data: make([]float32, 8)}))
	ctx := clustertest.Context(t)
	_, err := c.Nodes[1].Exchanger().Recv(ctx)
	check(t, err)
	_, err = c.Nodes[1].Exchanger().Recv(ctx)
	var p *rpc.PeerError
	if !errors.As(err, &p) || p.Who.Rank != 0 || !strings.Contains(err.Error(), "the rows of step 3 of interval 4 in training epoch 6, 4 rows of 2: want 3 rows") {
		t.Errorf("the receiver: %v", err)
	}
	if _, err := x.Recv(ctx); err == nil || !strings.Contains(err.Error(), "want 3 rows") {
		t.Errorf("the sender: %v", err)
	}
}

// Rows wait on their way until it is known which are wanted; and a server can leave all
// the same.
func TestRowsWaitUntilTheyAreExpected(t *testing.T) {
	testkit.Leaks(t)
	c := clustertest.Start(t, clustertest.Options{Graphs: 2, Tune: func(_ int, cfg *node.Config) { cfg.Rows.Await = true }})
	out, in := c.Nodes[0].Exchanger(), c.Nodes[1].Exchanger()
	ctx := clustertest.Context(t)
	arrives := func(epoch int) {
		t.Helper()
		m, err := in.Recv(ctx)
		if err != nil || m.Epoch != epoch {
			t.Fatalf("%+v, %v, want epoch %d", m, err, epoch)
		}
	}
	var asked atomic.Int64
	expect := func(first int) func(m *engine.RowMsg, rows int) error {
		return func(m *engine.RowMsg, rows int) error {
			asked.Add(1)
			if m.Epoch < first {
				return fmt.Errorf("want epoch %d or later", first)
			}
			return nil
		}
	}
	send := func(epoch int) {
		check(t, out.Send(ctx, &engine.RowMsg{To: 1, Epoch: epoch, Cols: 1, Data: make([]float32, 1000)}))
	}
	for phase := range 3 {
		in.(engine.Expecter).Expect(nil)
		send(2 * phase)
		if n := asked.Load(); n != int64(2*phase) {
			t.Errorf("phase %d: %d messages were let in, want %d", phase, n, 2*phase)
		}
		in.(engine.Expecter).Expect(expect(2 * phase))
		arrives(2 * phase)
		send(2*phase + 1)
		arrives(2*phase + 1)
	}
	in.(engine.Expecter).Expect(nil)
	send(6) // and neither takes anything in any more
	check(t, c.Nodes[1].Exchanger().Send(ctx, &engine.RowMsg{From: 1, To: 0, Cols: 1, Data: make([]float32, 1000)}))
	for rank, err := range c.Close() {
		if err != nil {
			t.Errorf("%d leaves: %v", rank, err)
		}
	}
	if n := asked.Load(); n != 6 {
		t.Errorf("%d messages were let in, want 6", n)
	}
}

// Everything on the sockets, TLS, HTTP/2 and acknowledgements included, is less than
// 3 % more than the rows themselves.
func TestOverhead(t *testing.T) {
	testkit.Leaks(t)
	for _, o := range []struct{ rows, cols, count int }{{4096, 16, 20}, {1000, 41, 40}, {500, 128, 30}, {20000, 128, 2}, {256, 64, 100}} {
		c := clustertest.Start(t, clustertest.Options{Graphs: 2, TLS: true})
		r := rand.New(rand.NewPCG(1, 1))
		data := make([]float32, o.rows*o.cols)
		for i := range data {
			data[i] = float32(r.NormFloat64())
		}
		before := c.Nodes[0].Counters().Sockets[0]
		ctx := clustertest.Context(t)
		go func() {
			for n := range o.count {
				if err := c.Nodes[0].Exchanger().Send(ctx, &engine.RowMsg{To: 1, Epoch: n, Cols: o.cols, Data: data}); err != nil {
					t.Error(err)
				}
			}
		}()
		for range o.count {
			_, err := c.Nodes[1].Exchanger().Recv(ctx)
			check(t, err)
		}
		n := c.Nodes[0].Counters()
		wire := n.Sockets[0].Sent - before.Sent + n.Sockets[0].Received - before.Received
		least := int64(4 * o.rows * o.cols * o.count)
		s, _ := n.Rows.Total(engine.Training)
		over := float64(wire)/float64(least) - 1
		t.Logf("%d messages of %d x %d: %.2f %% over the least on the sockets, %.2f %% counted as framing", o.count, o.rows, o.cols, 100*over, 100*float64(s.Framing)/float64(least))
		if over > 0.03 || s.Values != least || s.Payload > least || s.Messages != int64(o.count) {
			t.Errorf("%d bytes on the sockets for %d of rows (%+.2f %%); counted %+v", wire, least, 100*over, s)
		}
	}
}
