package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"dorylus/engine/sched"
	"dorylus/engine/task"
)

// program is a layer, forward and back: a product, a publication, a gather with a product
// that is as long as work says.
func program(sources [][]int32) []sched.Step {
	return []sched.Step{
		{Kind: task.AV, Layer: 1, Reads: -1},
		{Kind: task.SC, Layer: 1, Reads: -1, Publishes: true},
		{Kind: task.GA, Layer: 1, Reads: 1, Sources: sources},
	}
}

// pair are two servers of one interval each that read each other's rows: a task of each
// step takes as long as seconds says, by server and step, and sends bytes.
func pair(seconds [2][3]float64, bytes int64) Config {
	c := Config{Intervals: 2, Epochs: 1, Sync: true, Net: Network{Bandwidth: 1e9}, Params: Params{Hosts: []int{0}}}
	for rank := range 2 {
		s := Server{Cores: 1, Own: task.Range{Lo: rank, Hi: rank + 1}, Steps: program([][]int32{{0, 1}})}
		var tasks []Task
		for _, t := range seconds[rank] {
			tasks = append(tasks, Task{Seconds: t})
		}
		tasks[1].Send = []Send{{To: 1 - rank, Bytes: bytes}}
		s.Tasks = [][]Task{tasks}
		c.Servers = append(c.Servers, s)
	}
	return c
}

func play(t *testing.T, c Config) *Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-7 {
		t.Errorf("%s is %.9f s, want %.9f", what, got, want)
	}
}

// Small runs, worked out by hand.
func TestByHand(t *testing.T) {
	// Server 1's rows are there after 3 s of AV, 1 s of SC and 2 s on the link; server 0
	// gathers for 5 s from then on.
	c := pair([2][3]float64{{1, 1, 5}, {3, 1, 1}}, 2e9)
	near(t, "the epoch of two servers", play(t, c).Ends[0], 3+1+2+5)

	// A latency comes on top, once for the rows, and once for the gradients and the new
	// weights of server 1, which is done sooner: the weights are the last.
	c.Net.Latency = 0.5
	near(t, "with latency", play(t, c).Ends[0], 3+1+2+0.5+5+0.5)

	// The update takes 2 s of server 0's core, then its 1 GB of weights cross the link.
	c.Params.Update, c.Params.Weights = 2, 1e9
	near(t, "with an update", play(t, c).Ends[0], 3+1+2+0.5+5+2+1+0.5)

	// On two parameter servers each half takes half as long; the halves cross the links
	// at the same time. Server 0's gradients need 0.5 s to the other machine.
	c.Params.Hosts = []int{0, 1}
	near(t, "with two parameter servers", play(t, c).Ends[0], 3+1+2+0.5+5+0.5+1+0.5+0.5)

	// Packing 2 GB at 1 GB/s takes a core of the sender and then one of the receiver.
	c = pair([2][3]float64{{1, 1, 5}, {3, 1, 1}}, 2e9)
	c.Net.Pack = 1e9
	near(t, "with packing", play(t, c).Ends[0], 3+1+2+2+2+5)
}

// Four tasks of a second on cores, and on workers elsewhere, whose data share a link.
func TestCoresAndWorkers(t *testing.T) {
	for cores, want := range map[int]float64{1: 4, 2: 2, 3: 2, 4: 1, 9: 1} {
		s := Server{Cores: cores, Own: task.Range{Hi: 4}, Steps: []sched.Step{{Kind: task.AV, Layer: 1, Reads: -1}}}
		for range 4 {
			s.Tasks = append(s.Tasks, []Task{{Seconds: 1}})
		}
		c := Config{Intervals: 4, Epochs: 3, Sync: true, Servers: []Server{s}}
		r := play(t, c)
		near(t, fmt.Sprintf("an epoch on %d cores", cores), r.Epoch(), want)
		near(t, "time of the step", r.Steps[0], 12)
		near(t, "time of cores", r.Servers[0].Busy+r.Servers[0].Waiting, float64(cores)*3*want)
	}
	s := Server{Cores: 1, Slots: 2, Own: task.Range{Hi: 2}, Steps: []sched.Step{{Kind: task.AV, Layer: 1, Reads: -1}}}
	for range 2 {
		s.Tasks = append(s.Tasks, []Task{{Seconds: 1, Remote: true, Down: 1e9, Up: 2e9}})
	}
	c := Config{Intervals: 2, Epochs: 1, Sync: true, Servers: []Server{s}, Net: Network{Bandwidth: 1e9}}
	// Down one after the other until 1 s and 2 s; done at 2 s and 3 s; up until 4 s and 6 s.
	r := play(t, c)
	near(t, "two workers", r.Ends[0], 6)
	near(t, "time of workers", r.Servers[0].Remote, 2)
	c.Net.Latency = 0.25
	near(t, "two workers far away", play(t, c).Ends[0], 6.5)
	c.Net.Lane = 5e8 // each worker moves half as much: down until 2 s and 3 s, up until 7 s and 8 s
	near(t, "two workers with slow links", play(t, c).Ends[0], 0.5+3+1+4)
	c.Servers[0].Slots = 1
	c.Net.Lane = 0
	near(t, "one worker", play(t, c).Ends[0], 2*(1+1+2+0.5))
}

// random is a run of some servers with random work, from a seed.
func random(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 7))
	n := 1 + rng.IntN(5)
	c := Config{
		Epochs: 2 + rng.IntN(5), Sync: rng.IntN(3) == 0,
		Net:    Network{Bandwidth: 1e6 + 1e9*rng.Float64(), Latency: rng.Float64() * 1e-2, Overhead: rng.Int64N(200)},
		Params: Params{Weights: rng.Int64N(1e7), Update: rng.Float64() * 1e-2},
	}
	if !c.Sync {
		c.Staleness = rng.IntN(4)
	}
	if rng.IntN(2) == 0 {
		c.Net.Pack = 1e8
	}
	for range 1 + rng.IntN(3) {
		c.Params.Hosts = append(c.Params.Hosts, rng.IntN(n+1)-1)
	}
	var own []task.Range
	for range n {
		k := rng.IntN(4)
		own = append(own, task.Range{Lo: c.Intervals, Hi: c.Intervals + k})
		c.Intervals += k
	}
	if c.Intervals == 0 {
		c.Intervals, own[n-1].Hi = 1, 1
	}
	for rank := range n {
		s := Server{Cores: 1 + rng.IntN(3), Slots: 1 + rng.IntN(3), Own: own[rank], Push: []int64{0, 0, rng.Int64N(1e6)}}
		sources := [][]int32{}
		for i := own[rank].Lo; i < own[rank].Hi; i++ {
			list := []int32{}
			for j := range c.Intervals {
				if rng.IntN(2) == 0 {
					list = append(list, int32(j))
				}
			}
			sources = append(sources, list)
			tasks := make([]Task, 3)
			for k := range tasks {
				tasks[k].Seconds = rng.Float64() * 1e-2
			}
			tasks[0].Remote = rng.IntN(4) == 0
			tasks[0].Down, tasks[0].Up = rng.Int64N(1e5), rng.Int64N(1e5)
			for to := range n {
				if to != rank {
					tasks[1].Send = append(tasks[1].Send, Send{To: to, Bytes: rng.Int64N(1e6)})
				}
			}
			s.Tasks = append(s.Tasks, tasks)
		}
		s.Steps = program(sources)
		c.Servers = append(c.Servers, s)
	}
	return c
}

// Whatever is played: all tasks of all epochs run once; nobody starts an epoch that the
// bound forbids, nor twice; what is sent is received, and is what the tasks say; cores work
// no more than they can; twice the same is the same.
func TestInvariants(t *testing.T) {
	for seed := range uint64(300) {
		c := random(seed)
		done := map[task.ID]int{}
		began := make([]int, c.Intervals)
		c.Observe = func(s Started) {
			done[s.ID]++
			if own := c.Servers[s.Server].Own; !own.Has(s.Interval) {
				t.Errorf("seed %d: server %d of %v runs %v", seed, s.Server, own, s.Task)
			}
			if s.Step != 0 {
				return
			}
			began[s.Interval] = s.Epoch
			bound := c.Staleness
			for j, e := range began {
				// j has begun e, so it may be that it has not finished e.
				if s.Epoch-e > bound+1 {
					t.Errorf("seed %d: interval %d starts epoch %d while interval %d is in %d, staleness %d", seed, s.Interval, s.Epoch, j, e, bound)
				}
			}
		}
		r := play(t, c)
		if want := c.Intervals * c.Epochs * 3; len(done) != want {
			t.Fatalf("seed %d: %d tasks ran, want %d", seed, len(done), want)
		}
		var sent, received, planned int64
		for rank, u := range r.Servers {
			sent, received = sent+u.Sent, received+u.Received
			if work := u.Busy + u.Waiting - float64(c.Servers[rank].Cores)*r.Seconds(); math.Abs(work) > 1e-6 {
				t.Errorf("seed %d: cores of server %d are %v s off", seed, rank, work)
			}
			if rows := r.Seconds(); u.Sending > rows+1e-6 || u.Receiving > rows+1e-6 {
				t.Errorf("seed %d: server %d sends for %v s and receives for %v s of %v", seed, rank, u.Sending, u.Receiving, rows)
			}
		}
		for i := range c.Servers {
			s := &c.Servers[i]
			for _, tasks := range s.Tasks {
				for _, m := range tasks[1].Send {
					planned += int64(c.Epochs) * (m.Bytes + c.Net.Overhead)
				}
				planned += int64(c.Epochs*(len(c.Servers)-1)) * c.Net.Overhead // the end of the interval
			}
		}
		for k, h := range c.Params.Hosts {
			for rank := range c.Servers {
				if h == rank {
					continue
				}
				weights := int64(c.Epochs) * (share(c.Params.Weights, len(c.Params.Hosts), k) + c.Net.Overhead)
				grads := int64(0)
				if c.Servers[rank].Own.Len() > 0 {
					grads = int64(c.Epochs) * (share(max(c.Servers[rank].Push[2], 1), len(c.Params.Hosts), k) + c.Net.Overhead)
				}
				planned += grads + weights
				if h == -1 { // machines of their own are not among the servers
					planned -= grads + weights
					sent, received = sent-grads, received-weights
				}
			}
		}
		if sent != received || sent != planned {
			t.Errorf("seed %d: %d bytes sent, %d received, want %d", seed, sent, received, planned)
		}
		c.Observe = nil
		if again := play(t, c); !reflect.DeepEqual(r, again) {
			t.Errorf("seed %d: the second time it was\n%+v\nnot\n%+v", seed, again, r)
		}
	}
}

// More bandwidth, less latency, faster tasks: with a core for every interval, nothing gets
// slower. (With fewer cores it may: the order of tasks changes.)
func TestMonotone(t *testing.T) {
	for seed := range uint64(100) {
		c := random(seed)
		c.Net.Pack, c.Sync, c.Staleness, c.Params.Hosts = 0, true, 0, []int{-1}
		for i := range c.Servers {
			s := &c.Servers[i]
			s.Cores = 1 + s.Own.Len()
			for _, tasks := range s.Tasks {
				tasks[0].Remote = false
				tasks[1].Send = nil
				if to := (i + 1) % len(c.Servers); to != i { // one sender and one reader per link
					tasks[1].Send = []Send{{To: to, Bytes: 1e5}}
				}
			}
			for k := range s.Steps[2].Sources {
				s.Steps[2].Sources[k] = nil
				if from := (i + len(c.Servers) - 1) % len(c.Servers); from != i {
					for j := c.Servers[from].Own.Lo; j < c.Servers[from].Own.Hi; j++ {
						s.Steps[2].Sources[k] = append(s.Steps[2].Sources[k], int32(j))
					}
				}
			}
		}
		before := math.Inf(1)
		for _, bandwidth := range []float64{1e6, 1e7, 1e8, 1e9, 1e12} {
			c.Net.Bandwidth = bandwidth
			now := play(t, c).Seconds()
			if now > before+1e-7 {
				t.Errorf("seed %d: %v s at %v bytes per second, %v s with less", seed, now, bandwidth, before)
			}
			before = now
		}
		c.Net.Latency *= 2
		if slow := play(t, c).Seconds(); slow < before-1e-7 {
			t.Errorf("seed %d: %v s with twice the latency, %v s before", seed, slow, before)
		}
	}
}

// A slow server holds nobody up for long if the others may run ahead and it catches up;
// sync runs wait for the slowest in every epoch.
func TestStalenessHidesUnevenEpochs(t *testing.T) {
	c := pair([2][3]float64{{1, 0, 1}, {1, 0, 1}}, 1e6)
	c.Epochs, c.Net.Latency = 20, 0.4
	sync := play(t, c).Epoch()
	c.Sync = false
	async := play(t, c).Epoch()
	c.Staleness = 1
	ahead := play(t, c).Epoch()
	if !(async < sync && ahead < async) {
		t.Errorf("an epoch takes %v s in sync, %v s async, %v s with staleness 1: each should be shorter", sync, async, ahead)
	}
	if whole := 20 * 2.0; play(t, c).Seconds() > whole+2 {
		t.Errorf("20 epochs of staleness 1 take %v s, want little more than their work, %v s", play(t, c).Seconds(), whole)
	}
}

func TestBadConfigs(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"0 epochs":                        func(c *Config) { c.Epochs = 0 },
		"bandwidth 0 bytes":               func(c *Config) { c.Net.Bandwidth = 0 },
		"latency -1":                      func(c *Config) { c.Net.Latency = -1 },
		"has 0 cores":                     func(c *Config) { c.Servers[0].Cores = 0 },
		"end at 2 of 3":                   func(c *Config) { c.Intervals = 3 },
		"to server 5 of 2":                func(c *Config) { c.Servers[0].Tasks[0][1].Send[0].To = 5 },
		"on graph server 4 of 2":          func(c *Config) { c.Params.Hosts = []int{4} },
		"a task of NaN seconds":           func(c *Config) { c.Servers[1].Tasks[0][0].Seconds = math.NaN() },
		"remote tasks and 0 slots":        func(c *Config) { c.Servers[1].Tasks[0][0].Remote = true },
		"staleness 2 needs the async":     func(c *Config) { c.Staleness = 2 },
		"no servers":                      func(c *Config) { c.Servers = nil },
		"nothing happens any more in epo": func(c *Config) { c.Servers[0].Tasks[0][1].Send = nil },
	} {
		c := pair([2][3]float64{{1, 1, 1}, {1, 1, 1}}, 1)
		change(&c)
		if _, err := Run(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
