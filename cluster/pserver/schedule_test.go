package pserver

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/engine/task"
	"dorylus/kernels"
	"dorylus/kernels/cpu"
)

// world is shards and clients without goroutines or streams: a schedule moves each message.
type world struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	dev     kernels.Device
	shards  []*shard
	clients []*Client
	wires   []*wire
}

// wire is a connection of a client with a shard, and what is on it.
type wire struct {
	c        *Client
	l        *link
	s        *shard
	far      *client // nil: not connected
	stream   int
	up, down []*rpc.Message
}

func newWorld(t *testing.T, seed uint64, shards int, blocks int, spans []kernels.Span, cfg optim.Config, from *params.State) *world {
	t.Helper()
	dev, err := openDevice()
	check(t, err)
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 77)), dev: dev}
	for k := range shards {
		sc := ServerConfig{Shard: k, Shards: shards, Device: dev, ctx: t.Context()}
		check(t, sc.check())
		s, err := newShard(sc)
		check(t, err)
		w.shards = append(w.shards, s)
	}
	for r, own := range spans {
		pc := params.Config{Specs: net, Optim: cfg, Blocks: blocks, Device: dev}
		if pc.From = from; r == 0 && from == nil {
			pc.Init = params.InitParams(net, 1)
		}
		c, err := newClient(ClientConfig{Rank: r, Graphs: len(spans), Blocks: own, Intervals: task.Range(own), Params: pc, Run: "test", Addrs: make([]string, shards)})
		check(t, err)
		w.clients = append(w.clients, c)
		for k, l := range c.links {
			w.wires = append(w.wires, &wire{c: c, l: l, s: w.shards[k]})
		}
	}
	return w
}

func (w *world) close() {
	for _, c := range w.clients {
		if c.replica != nil {
			check(w.t, c.replica.Close())
		}
		c.cancel()
	}
	for _, s := range w.shards {
		check(w.t, s.close())
	}
	check(w.t, w.dev.Close())
}

// connect opens a wire anew; what was on it is lost.
func (w *world) connect(x *wire) {
	h := x.c.hello(x.l)
	back := *h
	var err error
	if x.far, err = x.s.join(&back, "test"); err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	x.s.letGo()
	x.stream, x.up, x.down = x.far.stream, nil, nil
	m, _ := x.s.next(x.far, x.stream)
	if err := x.c.welcomed(x.l, h, m); err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
}

// move does one thing on a wire and says whether there was anything to do. Up is in order,
// but that pushes may overtake each other and come twice.
func (w *world) move(x *wire, faults bool) bool {
	if x.far == nil || faults && w.rng.IntN(40) == 0 {
		w.connect(x)
		return true
	}
	if m := x.c.next(x.l); m != nil {
		at := len(x.up)
		for faults && m.Kind == kindPush && at > 0 && x.up[at-1].Kind == kindPush && w.rng.IntN(2) == 0 {
			at--
		}
		x.up = slices.Insert(x.up, at, m)
		if faults && m.Kind == kindPush && w.rng.IntN(4) == 0 {
			x.up = append(x.up, m)
		}
		return true
	}
	if m, _ := x.s.next(x.far, x.stream); m != nil {
		x.down = append(x.down, m)
		return true
	}
	if len(x.up) > 0 && (len(x.down) == 0 || w.rng.IntN(2) == 0) {
		m := x.up[0]
		x.up = x.up[1:]
		if err := x.s.handle(x.far, m); err != nil {
			w.t.Fatalf("seed %d: shard %d: message of kind %d: %v", w.seed, x.s.cfg.Shard, m.Kind, err)
		}
		return true
	}
	if len(x.down) > 0 {
		m := x.down[0]
		x.down = x.down[1:]
		if m.Kind == kindDone {
			return true
		}
		if err := x.c.handle(x.l, m); err != nil {
			w.t.Fatalf("seed %d: client %d: message of kind %d: %v", w.seed, x.c.cfg.Rank, m.Kind, err)
		}
		return true
	}
	return false
}

// settle moves everything until nothing is left to move.
func (w *world) settle(faults bool) {
	for idle := false; !idle; {
		idle = true
		for _, i := range w.rng.Perm(len(w.wires)) {
			if w.move(w.wires[i], false) {
				idle = false
			}
		}
		if faults && !idle && w.rng.IntN(3) == 0 {
			w.connect(w.wires[w.rng.IntN(len(w.wires))])
		}
	}
}

// apart says that shards, or a client, are more than one version away from each other.
func (w *world) apart() {
	lo, hi := 1<<30, -1
	for _, s := range w.shards {
		lo, hi = min(lo, s.newest()), max(hi, s.newest())
	}
	for _, c := range w.clients {
		lo = min(lo, c.complete)
	}
	if lo >= 0 && hi > lo+1 {
		w.t.Fatalf("seed %d: a shard has version %d while somebody has %d", w.seed, hi, lo)
	}
}

// TestEachGradientCountsOnce runs schedules in which messages are repeated, overtake each
// other and are lost with their connections, at random, sync and async, and wants the bits
// of one process: states, losses, rates, norms, one update per version at each client.
func TestEachGradientCountsOnce(t *testing.T) {
	seeds := 3000
	if testing.Short() || raceOn {
		seeds = 100
	}
	const epochs = 3
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 5))
		blocks, graphs := 1+rng.IntN(9), 1+rng.IntN(4)
		shards, cfg := []int{1, 2, 3, 7}[rng.IntN(4)], optims[rng.IntN(len(optims))]
		want := alone(t, cfg, blocks, epochs)
		spans := cuts(rng, blocks, graphs)
		w := newWorld(t, seed, shards, blocks, spans, cfg, nil)
		w.settle(false)
		async := rng.IntN(2) == 0
		type job struct{ client, epoch, block, step int }
		var jobs []job
		for e := range epochs {
			for r, own := range spans {
				for b := own.Lo; b < own.Hi; b++ {
					for step := range 2 {
						for range 1 + rng.IntN(2)*rng.IntN(2) {
							jobs = append(jobs, job{r, e, b, step})
						}
					}
				}
			}
		}
		if async {
			rng.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
		}
		for i := 0; i < len(jobs); {
			w.apart()
			if rng.IntN(3) > 0 {
				w.move(w.wires[rng.IntN(len(w.wires))], true)
				continue
			}
			j := jobs[i]
			c := w.clients[j.client]
			if !async && j.epoch > c.complete {
				w.move(w.wires[rng.IntN(len(w.wires))], true)
				continue
			}
			check(t, c.Push(t.Context(), pushTask(c, j.epoch, j.block, j.step)))
			i++
		}
		w.settle(true)
		w.settle(false)
		for r, c := range w.clients {
			if c.complete != epochs {
				t.Fatalf("seed %d: %d blocks, %d shards: client %d ends with version %d", seed, blocks, shards, r, c.complete)
			}
			for e := range epochs {
				if u := <-c.Updates(); !same(u, want.updates[e]) {
					t.Fatalf("seed %d: client %d got %+v, want %+v", seed, r, u, want.updates[e])
				}
			}
		}
		if got := w.snapshot(rng.IntN(graphs)); got != want.states[epochs] {
			t.Fatalf("seed %d: %d blocks, %v, %d shards, async %v, %s: %s", seed, blocks, spans, shards, async, cfg.Name, first(got, want.states[epochs]))
		}
		w.close()
	}
}

// snapshot asks for one and moves until it is there.
func (w *world) snapshot(rank int) string {
	w.t.Helper()
	s := w.begin(rank)
	w.settle(true)
	w.settle(false)
	select {
	case <-s.done:
		return bits(s.state)
	default:
		w.t.Fatalf("seed %d: the snapshot is still not there", w.seed)
		return ""
	}
}

// begin asks for a snapshot.
func (w *world) begin(rank int) *snapshot {
	c := w.clients[rank]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.startSnapshot()
}

// TestSnapshotsAreOfOneVersion takes snapshots while updates are made and connections break.
func TestSnapshotsAreOfOneVersion(t *testing.T) {
	seeds := 300
	if testing.Short() || raceOn {
		seeds = 15
	}
	const epochs, blocks = 4, 6
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 6))
		cfg := optims[rng.IntN(len(optims))]
		want := alone(t, cfg, blocks, epochs)
		spans := cuts(rng, blocks, 1+rng.IntN(3))
		w := newWorld(t, seed, 1+rng.IntN(4), blocks, spans, cfg, nil)
		w.settle(false)
		var asked []*snapshot
		idle := map[int]*snapshot{}
		var jobs []func()
		for e := range epochs {
			for r, own := range spans {
				for b := own.Lo; b < own.Hi; b++ {
					for step := range 2 {
						c := w.clients[r]
						jobs = append(jobs, func() { check(t, c.Push(t.Context(), pushTask(c, e, b, step))) })
					}
				}
			}
		}
		for len(jobs) > 0 {
			switch rng.IntN(12) {
			case 0:
				jobs[0]()
				jobs = jobs[1:]
			case 1:
				r := rng.IntN(len(spans))
				if s := idle[r]; s == nil || closed(s.done) {
					s := w.begin(r)
					idle[r], asked = s, append(asked, s)
				}
			default:
				w.move(w.wires[rng.IntN(len(w.wires))], true)
				w.apart()
			}
		}
		w.settle(true)
		w.settle(false)
		for i, s := range asked {
			if !closed(s.done) {
				t.Fatalf("seed %d: snapshot %d of %d, of version %d, is not there", seed, i, len(asked), s.state.Version)
			}
			if got := bits(s.state); got != want.states[s.state.Version] {
				t.Fatalf("seed %d: the snapshot of version %d: %s", seed, s.state.Version, first(got, want.states[s.state.Version]))
			}
		}
		w.close()
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestResumeElsewhere stops half way and goes on with another number of shards and clients.
func TestResumeElsewhere(t *testing.T) {
	const epochs, blocks = 6, 7
	for i, cfg := range optims {
		want := alone(t, cfg, blocks, epochs)
		rng := rand.New(rand.NewPCG(uint64(i), 9))
		for _, shards := range []int{1, 3, 7} {
			w := newWorld(t, uint64(i), shards, blocks, cuts(rng, blocks, shards), cfg, want.mid)
			w.settle(false)
			for e := epochs / 2; e < epochs; e++ {
				for _, c := range w.clients {
					if c.first != epochs/2 {
						t.Fatalf("the run starts with version %d, want %d", c.first, epochs/2)
					}
					for b := c.cfg.Blocks.Lo; b < c.cfg.Blocks.Hi; b++ {
						for step := range 2 {
							check(t, c.Push(t.Context(), pushTask(c, e, b, step)))
						}
					}
				}
				w.settle(false)
				for _, c := range w.clients {
					if u := <-c.Updates(); !same(u, want.updates[e]) {
						t.Fatalf("%d shards: %+v, want %+v", shards, u, want.updates[e])
					}
				}
			}
			if got := w.snapshot(0); got != want.states[epochs] {
				t.Errorf("%s on %d shards: %s", cfg.Name, shards, first(got, want.states[epochs]))
			}
			w.close()
		}
	}
}

// TestResumeOnTheProcessor is TestResumeElsewhere with native kernels: that rows of a
// parameter are apart changes no bit of theirs.
func TestResumeOnTheProcessor(t *testing.T) {
	before := openDevice
	defer func() { openDevice = before }()
	openDevice = func() (kernels.Device, error) { return cpu.Open("") }
	dev, err := openDevice()
	if err != nil {
		t.Skipf("SKIPPED, no native kernels: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	TestResumeElsewhere(t)
}

var _ engine.Params = (*Client)(nil)
