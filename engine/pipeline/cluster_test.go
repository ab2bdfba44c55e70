package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/engine/params"
)

// mesh delivers row messages between partitions of one process, some twice, in an
// order shuffled by seed.
type mesh struct {
	mu    sync.Mutex
	rng   *rand.Rand // nil: each once, in order
	boxes []*box
	rows  int // delivered, repeats left out
}

type box struct {
	mu    sync.Mutex
	queue []*engine.RowMsg
	some  chan struct{} // capacity 1: the queue may have something
}

type port struct {
	m    *mesh
	self int
}

func newMesh(n int, seed uint64) *mesh {
	m := &mesh{rng: rand.New(rand.NewPCG(seed, 5))}
	for range n {
		m.boxes = append(m.boxes, &box{some: make(chan struct{}, 1)})
	}
	return m
}

func (p port) Send(_ context.Context, msg *engine.RowMsg) error {
	if msg.From != p.self || msg.To == p.self {
		return fmt.Errorf("partition %d sends from %d to %d", p.self, msg.From, msg.To)
	}
	b := p.m.boxes[msg.To]
	p.m.mu.Lock()
	copies, at := 1, 1.0
	if p.m.rng != nil {
		copies, at = 1+p.m.rng.IntN(2), p.m.rng.Float64()
	}
	if msg.Cols > 0 {
		p.m.rows += len(msg.Data) / msg.Cols
	}
	p.m.mu.Unlock()
	b.mu.Lock()
	for range copies {
		b.queue = slices.Insert(b.queue, min(int(at*float64(len(b.queue)+1)), len(b.queue)), msg)
	}
	b.mu.Unlock()
	b.wake()
	return nil
}

func (b *box) wake() {
	select {
	case b.some <- struct{}{}:
	default:
	}
}

func (p port) Recv(ctx context.Context) (*engine.RowMsg, error) {
	b := p.m.boxes[p.self]
	for {
		b.mu.Lock()
		if len(b.queue) > 0 {
			m := b.queue[0]
			b.queue = b.queue[1:]
			b.mu.Unlock()
			b.wake()
			return m, nil
		}
		b.mu.Unlock()
		select {
		case <-b.some:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// hall is a group of graph servers in one process. A key that somebody gives twice is an
// error, and so is one that another server's failure leaves open.
type hall struct {
	size    int
	mu      sync.Mutex
	rounds  map[string]*round
	reason  string
	stopped []chan string
	lost    chan struct{}
}

type round struct {
	given [][]byte
	here  []bool
	n     int
	full  chan struct{}
}

func newHall(n int) *hall {
	h := &hall{size: n, rounds: map[string]*round{}, lost: make(chan struct{})}
	for range n {
		h.stopped = append(h.stopped, make(chan string, 1))
	}
	return h
}

type seat struct {
	h    *hall
	rank int
}

func (s seat) Rank() int              { return s.rank }
func (s seat) Size() int              { return s.h.size }
func (s seat) Stopped() <-chan string { return s.h.stopped[s.rank] }

func (s seat) Stop(reason string) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.h.reason != "" {
		return
	}
	s.h.reason = reason
	for _, c := range s.h.stopped {
		c <- reason
	}
}

func (s seat) Gather(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	s.h.mu.Lock()
	r := s.h.rounds[key]
	if r == nil {
		r = &round{given: make([][]byte, s.h.size), here: make([]bool, s.h.size), full: make(chan struct{})}
		s.h.rounds[key] = r
	}
	if r.here[s.rank] {
		s.h.mu.Unlock()
		return nil, fmt.Errorf("partition %d gives %q twice", s.rank, key)
	}
	r.here[s.rank], r.given[s.rank] = true, mine
	if r.n++; r.n == s.h.size {
		close(r.full)
	}
	s.h.mu.Unlock()
	select {
	case <-r.full:
		return r.given, nil
	case <-s.h.lost:
		return nil, errors.New("a server is lost")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s seat) Collect(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	all, err := s.Gather(ctx, key, mine)
	if s.rank != 0 {
		all = nil
	}
	return all, err
}

// tap is the shared parameter server as one partition sees it: its own channel
// of updates.
type tap struct {
	Server
	rank    int
	updates chan engine.Update
}

// Each server pins what it evaluates for itself.
func (t tap) Fetch(ctx context.Context, interval, epoch int) (engine.Weights, error) {
	if interval < 0 {
		interval -= t.rank
	}
	return t.Server.Fetch(ctx, interval, epoch)
}

func (t tap) Release(interval, epoch int) {
	if interval < 0 {
		interval -= t.rank
	}
	t.Server.Release(interval, epoch)
}

func (t tap) Updates() <-chan engine.Update { return t.updates }
func (t tap) Close() error                  { return nil }

// shared is one parameter server for all partitions.
type shared struct {
	epochs int
	ready  chan struct{}
	server *params.Server
	err    error
	taps   []tap
	done   sync.WaitGroup
}

func (s *shared) connect(rank int) func(context.Context, ParamJob) (Server, error) {
	return func(_ context.Context, j ParamJob) (Server, error) {
		if rank == 0 {
			s.server, s.err = params.New(j.Config)
			for i := range s.taps {
				s.taps[i].Server = s.server
			}
			close(s.ready)
			if s.err == nil {
				s.done.Go(func() {
					for u := range s.server.Updates() {
						for _, t := range s.taps {
							t.updates <- u
						}
					}
				})
			}
		}
		<-s.ready
		return s.taps[rank], s.err
	}
}

// partitioned says how trainPartitioned runs.
type partitioned struct {
	parts int
	seed  uint64                          // of the order of messages
	calm  bool                            // messages come in order
	group func(engine.Group) engine.Group // what stands between; nil: nothing
	tune  func(*Cluster)                  // nil: nothing
}

// joint is what the partitions have made together.
type joint struct {
	*Result
	opts []Options
	rows int // that went from one to another
}

// trainPartitioned runs one session per partition, as a cluster would, in one process.
// Every one of them has a Listener of its own.
func trainPartitioned(t *testing.T, how partitioned, fresh func() Options) joint {
	t.Helper()
	j, errs := runPartitioned(t, context.Background(), how, fresh)
	for rank, err := range errs {
		if err != nil {
			t.Errorf("partition %d: %v", rank, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return j
}

func runPartitioned(t *testing.T, ctx context.Context, how partitioned, fresh func() Options) (joint, []error) {
	t.Helper()
	net, h := newMesh(how.parts, how.seed), newHall(how.parts)
	if how.calm {
		net.rng = nil
	}
	out := joint{opts: make([]Options, how.parts)}
	ps := &shared{ready: make(chan struct{}), taps: make([]tap, how.parts)}
	for rank := range out.opts {
		o := fresh()
		ps.taps[rank].rank = rank
		ps.taps[rank].updates = make(chan engine.Update, o.Config.Epochs+1)
		o.Cluster = &Cluster{
			Group: seat{h, rank}, Exchange: port{net, rank}, Connect: ps.connect(rank),
			Blocks: graph.Partition(o.Store, o.Split.Train, how.parts),
		}
		if how.tune != nil {
			how.tune(o.Cluster)
		}
		if how.group != nil {
			o.Cluster.Group = how.group(o.Cluster.Group)
		}
		if rank > 0 {
			o.Save, o.From, o.Stop = nil, nil, nil
		}
		out.opts[rank] = o
	}
	results, errs := make([]*Result, how.parts), make([]error, how.parts)
	ctx, end := context.WithCancel(ctx)
	defer end()
	var lost sync.Once
	var wg sync.WaitGroup
	for rank := range out.opts {
		wg.Go(func() {
			results[rank], errs[rank] = Train(ctx, out.opts[rank])
			if errs[rank] != nil {
				lost.Do(func() { close(h.lost); end() }) // the others would hear of it
			}
		})
	}
	wg.Wait()
	if ps.server != nil {
		check(t, ps.server.Close())
		ps.done.Wait()
	}
	out.Result, out.rows = results[0], net.rows
	for rank, r := range results {
		if r != nil && rank > 0 && (r.WeightsSHA256 != results[0].WeightsSHA256 || r.Reason != results[0].Reason || r.Epochs != results[0].Epochs) {
			t.Errorf("server %d ended %q after %d epochs with %.12s, server 0 %q after %d with %.12s", rank,
				r.Reason, r.Epochs, r.WeightsSHA256, results[0].Reason, results[0].Epochs, results[0].WeightsSHA256)
		}
	}
	return out, errs
}

// Partitions, some of them empty or without training rows, make the bits of one process:
// losses, weights, predictions and every evaluation.
func TestPartitionsGiveTheSameBits(t *testing.T) {
	fresh := func() Options { return options(t) }
	base := fresh()
	want := mustTrain(t, base)
	counts, seeds := []int{1, 2, 3, 8, 25}, uint64(2)
	if testing.Short() {
		counts, seeds = []int{3, 25}, 1
	}
	for _, parts := range counts {
		for seed := range seeds {
			got := trainPartitioned(t, partitioned{parts: parts, seed: seed}, fresh)
			what := fmt.Sprintf("%d partitions, seed %d", parts, seed)
			sameBits(t, what, want, got.Result, events(base).losses(), events(got.opts[0]).losses())
			sameEvaluations(t, what, events(base), events(got.opts[0]))
			for rank, o := range got.opts[1:] {
				sameEvaluations(t, fmt.Sprintf("%s, server %d", what, rank+1), events(base), events(o))
			}
			if parts > 1 && got.rows == 0 {
				t.Errorf("%s: no rows went from one to another", what)
			}
		}
	}
}

// sameEvaluations compares the evaluations of two runs.
func sameEvaluations(t *testing.T, what string, want, got *log) {
	t.Helper()
	list := func(l *log) (out []string) {
		for _, e := range l.events {
			if e, ok := e.(engine.Evaluated); ok {
				e.Took, e.At = 0, 0
				out = append(out, fmt.Sprintf("%+v", e))
			}
		}
		return out
	}
	if w, g := list(want), list(got); !slices.Equal(w, g) {
		t.Errorf("%s: evaluations\n%s\nwant\n%s", what, strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}
