package clustertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"dorylus/cluster/link"
)

// Faults makes trouble in links by seed: each pair of servers has dice of its own, so
// that one pair's trouble does not depend on another's pace. Rates are per message.
type Faults struct {
	Seed               uint64
	CutRate, TwiceRate float64
	DelayRate          float64
	Delay              time.Duration // at most
	Shuffle            bool          // what is sent again, in another order

	mu   sync.Mutex
	dice map[[2]int]*rand.Rand
	done Done
}

// Done counts what Faults has done.
type Done struct{ Cuts, Twices, Delays, Shuffles int }

var _ link.Faults = (*Faults)(nil)

func (f *Faults) rng(from, to int) *rand.Rand {
	if f.dice == nil {
		f.dice = make(map[[2]int]*rand.Rand)
	}
	r := f.dice[[2]int{from, to}]
	if r == nil {
		r = rand.New(rand.NewPCG(f.Seed, uint64(from)<<32|uint64(to)))
		f.dice[[2]int{from, to}] = r
	}
	return r
}

// Message implements link.Faults.
func (f *Faults) Message(from, to int) link.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rng(from, to)
	var x link.Fault
	if r.Float64() < f.DelayRate {
		x.Delay = time.Duration(r.Int64N(int64(f.Delay) + 1))
		f.done.Delays++
	}
	if x.Cut = r.Float64() < f.CutRate; x.Cut {
		f.done.Cuts++
	}
	if x.Twice = r.Float64() < f.TwiceRate; x.Twice {
		f.done.Twices++
	}
	return x
}

// Order implements link.Faults.
func (f *Faults) Order(from, to, n int) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.Shuffle {
		return nil
	}
	if n > 1 {
		f.done.Shuffles++
	}
	return f.rng(from, to).Perm(n)
}

// Done is what has been done so far.
func (f *Faults) Done() Done {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

// Net is the network between servers, which a test can break: whole connections, not
// streams. Every connection is known by the ranks of who has opened it and who answers.
type Net struct {
	mu      sync.Mutex
	conns   map[[2]int][]net.Conn
	blocked map[[2]int]bool
}

var errBlocked = errors.New("the network between them is down")

// dialer is the Dialer of a server.
func (n *Net) dialer(from int, addrs []string) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		pair := [2]int{from, slices.Index(addrs, addr)}
		n.mu.Lock()
		blocked := n.blocked[pair]
		n.mu.Unlock()
		if blocked {
			return nil, errBlocked
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.blocked[pair] { // since it was asked for
			c.Close()
			return nil, errBlocked
		}
		if n.conns == nil {
			n.conns = make(map[[2]int][]net.Conn)
		}
		n.conns[pair] = append(n.conns[pair], c)
		return c, nil
	}
}

// Cut closes the connections that from has opened to to, as if a cable was pulled and
// put back, and returns how many there have been so far.
func (n *Net) Cut(from, to int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	pair := [2]int{from, to}
	for _, c := range n.conns[pair] {
		c.Close()
	}
	return len(n.conns[pair])
}

// Block takes the network between two servers down, both ways.
func (n *Net) Block(a, b int) {
	n.set(a, b, true)
	n.Cut(a, b)
	n.Cut(b, a)
}

// Unblock brings it back.
func (n *Net) Unblock(a, b int) { n.set(a, b, false) }

func (n *Net) set(a, b int, blocked bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.blocked == nil {
		n.blocked = make(map[[2]int]bool)
	}
	n.blocked[[2]int{a, b}], n.blocked[[2]int{b, a}] = blocked, blocked
}
