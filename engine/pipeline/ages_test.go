package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/kernels"
)

// agesFrom adds up the ages that gathers have read, by partition.
func (l *log) agesFrom() engine.Ages {
	var sum engine.Ages
	for _, e := range l.events {
		if d, ok := e.(engine.TaskDone); ok {
			sum = sum.Add(d.AgeFrom)
		}
	}
	return sum
}

// sameTotals wants each task's reads by partition to add up to its reads by age alone,
// and to be told by tasks that read anything only.
func sameTotals(t *testing.T, what string, l *log, parts int) {
	t.Helper()
	for _, e := range l.events {
		d, ok := e.(engine.TaskDone)
		if !ok || d.Age == nil && d.AgeFrom == nil {
			continue
		}
		if len(d.AgeFrom) != parts || !slices.Equal(d.AgeFrom.Total(), d.Age) {
			t.Errorf("%s: %v has read %v, of the partitions %v", what, d.Task, d.Age, d.AgeFrom)
		}
	}
}

// pace holds one partition, slow, as far behind the others as the bound allows, and
// keeps these, and the intervals of each, within an epoch of each other, by what each of
// them has heard.
type pace struct {
	slow, bound, epochs, parts int

	mu    sync.Mutex
	done  []map[[2]int]int // by who has heard: how many intervals of a partition have finished an epoch
	moved chan struct{}    // closed with the next change of done
	cuts  int              // intervals of each partition
}

func newPace(parts, cuts, slow, bound, epochs int) *pace {
	p := &pace{slow: slow, bound: bound, epochs: epochs, parts: parts, cuts: cuts, moved: make(chan struct{})}
	for range parts {
		p.done = append(p.done, map[[2]int]int{})
	}
	return p
}

// heard says that by now rank knows of m, and its rows are published there.
func (p *pace) heard(rank int, m *engine.RowMsg) {
	if m == nil || m.Pass != engine.Training || !m.Finished {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[rank][[2]int{m.From, m.Epoch}]++
	close(p.moved)
	p.moved = make(chan struct{})
}

// may says whether rank may work on epoch, and else what to wait for.
func (p *pace) may(rank, epoch int) (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for from := range p.parts {
		want := epoch - 1
		switch {
		case from == p.slow && rank != p.slow:
			continue
		case rank == p.slow && from != p.slow && epoch > 0:
			want = min(epoch+p.bound, p.epochs-1)
		}
		if want >= 0 && p.done[rank][[2]int{from, want}] < p.cuts {
			return false, p.moved
		}
	}
	return true, nil
}

// paced is a partition's backend, and its way to the others, under a pace.
type paced struct {
	engine.Backend
	engine.Exchanger
	p    *pace
	rank int
	last *engine.RowMsg // of Recv's caller, who has published it when it asks for the next
}

func (b *paced) Local() bool  { return false }
func (b *paced) Slots() int   { return 4 }
func (b *paced) Close() error { return nil }

func (b *paced) Run(ctx context.Context, w *engine.Work) error {
	for w.Pass == engine.Training {
		may, moved := b.p.may(b.rank, w.Task.Epoch)
		if may {
			break
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return b.Backend.Run(ctx, w)
}

// An interval tells all others that it has finished; it is counted here once.
func (b *paced) Send(ctx context.Context, m *engine.RowMsg) error {
	if m.To == (b.rank+1)%b.p.parts {
		b.p.heard(b.rank, m)
	}
	return b.Exchanger.Send(ctx, m)
}

func (b *paced) Recv(ctx context.Context) (*engine.RowMsg, error) {
	b.p.heard(b.rank, b.last)
	m, err := b.Exchanger.Recv(ctx)
	b.last = m
	return m, err
}

// Of three partitions one is held back as far as the bound allows. The others read rows
// of its that are as old as they may be, and of each other's none that are stale; it
// reads no stale rows at all. So each count is of the right pair, the reader first.
func TestStalenessIsThatOfTheSlowPartition(t *testing.T) {
	const parts, cuts = 3, 2
	st := build(t, small(96, 1), "natural")
	for _, bound := range []int{0, 1, 3} {
		for slow := range parts {
			if testing.Short() && (bound != 3 || slow != 1) {
				continue
			}
			what, epochs := fmt.Sprintf("S=%d, partition %d is slow", bound, slow), bound+5
			p, next := newPace(parts, cuts, slow, bound, epochs), 0
			var all []*paced
			j := trainPartitioned(t, partitioned{parts: parts, calm: true, tune: func(c *Cluster) {
				b := all[c.Group.Rank()]
				b.Exchanger, c.Exchange = c.Exchange, b
			}}, func() Options {
				return options(t, on(st, func(o *Options) {
					o.Config.Pipeline, o.Config.Staleness, o.Config.Epochs, o.Config.EvalEvery = "async", bound, epochs, epochs
					o.Config.AsyncWait = 0
					o.Config.Intervals, o.Config.Threads = cuts, 2
					local := backend.NewLocal(o.Device)
					t.Cleanup(func() { local.Close() })
					b := &paced{Backend: local, p: p, rank: next}
					next++
					all, o.Backend = append(all, b), b
				}))
			})
			for reader, o := range j.opts {
				from := events(o).agesFrom()
				sameTotals(t, what, events(o), parts)
				for source, ages := range from {
					oldest, want := len(ages)-1, 1 // at most
					if source == slow && reader != slow {
						want = bound + 1
						if oldest != want || ages[oldest] == 0 {
							t.Errorf("%s: partition %d has read %v of it, by age, want some of age %d and none older", what, reader, ages, want)
						}
					}
					if oldest > want || oldest < 0 {
						t.Errorf("%s: partition %d has read %v of partition %d, by age, want some, of ages up to %d", what, reader, ages, source, want)
					}
				}
			}
		}
	}
}

// Whatever the delays and the order of messages, no pair reads rows older than the bound,
// and the counts by pair are those by age alone.
func TestPairsKeepTheBound(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 4
	}
	const parts = 3
	st := build(t, small(96, 1), "natural")
	stale := 0
	for seed := range seeds {
		bound, slow, next := []int{0, 1, 3}[seed%3], seed/3%parts, 0
		what := fmt.Sprintf("S=%d, seed %d", bound, seed)
		j := trainPartitioned(t, partitioned{parts: parts, seed: uint64(seed)}, func() Options {
			return options(t, on(st, func(o *Options) {
				o.Config.Pipeline, o.Config.Staleness, o.Config.Epochs, o.Seed = "async", bound, 6+bound, uint64(seed)
				o.Config.AsyncWait = 0
				o.Config.Intervals, o.Config.EvalEvery, o.Config.Threads = 2, 4, 2
				if next++; next-1 == slow {
					local := backend.NewLocal(o.Device)
					t.Cleanup(func() { local.Close() })
					o.Backend = &dawdler{Backend: local, rng: rand.New(rand.NewPCG(uint64(seed), 9))}
				}
			}))
		})
		for reader, o := range j.opts {
			sameTotals(t, what, events(o), parts)
			for source, ages := range events(o).agesFrom() {
				if len(ages) > bound+2 {
					t.Errorf("%s: partition %d has read rows of partition %d that were %d epochs old, at most %d may be: %v", what, reader, source, len(ages)-1, bound+1, ages)
				}
				if len(ages) > 2 {
					stale++
				}
			}
		}
	}
	if !testing.Short() && stale == 0 {
		t.Error("no pair ever read a stale row: the schedules show nothing")
	}
}

// One process has no pairs, and counts as before.
func TestOneProcessHasNoPairs(t *testing.T) {
	for _, pipeline := range []string{"sync", "async"} {
		o := options(t, func(o *Options) { o.Config.Pipeline, o.Config.Epochs = pipeline, 2 })
		mustTrain(t, o)
		if from := events(o).agesFrom(); from != nil {
			t.Errorf("%s: %v by partition", pipeline, from)
		}
		if len(events(o).ages()) == 0 {
			t.Errorf("%s: no ages", pipeline)
		}
	}
}

// BenchmarkCountAges is what a gather of 16 sources of 4 partitions pays for its latches
// and counts.
func BenchmarkCountAges(b *testing.B) {
	pub := published{latch: make([]latch, 16), ends: []int{4, 8, 12, 16}}
	var sources []int32
	for i := range pub.latch {
		sources = append(sources, int32(i))
	}
	var s kernels.Stream
	for b.Loop() {
		pub.read(s, sources, 1, func() {})
	}
}
