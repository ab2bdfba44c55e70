package sim

import (
	"errors"
	"fmt"

	"dorylus/engine/sched"
	"dorylus/engine/task"
)

// Config says what is played.
type Config struct {
	// Intervals is the number of intervals of all servers, in the one order.
	Intervals int
	// Servers are the graph servers, by rank. Their Own follow each other.
	Servers []Server
	// Epochs is how many are played, at least 1.
	Epochs int
	// Sync and Staleness are those of sched.Config.
	Sync      bool
	Staleness int
	// Wait is how long idle cores of an asynchronous run wait for fresh rows and weights:
	// sched.NewPatience.
	Wait   float64
	Net    Network
	Params Params
	// Observe, if not nil, sees every task as a core or a worker takes it up.
	Observe func(Started)
}

// Server is one graph server and its share of the work.
type Server struct {
	Cores int // at least 1
	// Slots is how many tasks its Remote workers do at a time.
	Slots int
	Own   task.Range
	// Steps is the program, with the Sources of the own intervals.
	Steps []sched.Step
	// Tasks[i][s] is step s of own interval i, every epoch.
	Tasks [][]Task
	// Push[s] are the bytes of gradients that go to the parameter servers, all together,
	// once all own intervals have done step s of an epoch. nil: none.
	Push []int64
}

// Task is what one task takes.
type Task struct {
	Seconds float64 // of one core, or of one remote worker
	Send    []Send  // what it publishes, when it is done
	// Remote tasks are sent Down bytes, take Seconds there and return Up bytes.
	Remote   bool
	Down, Up int64
}

// Send is rows for another server.
type Send struct {
	To    int
	Bytes int64
}

// Network is the same for all servers.
type Network struct {
	// Bandwidth is what a server can send, and what it can receive at the same time, in
	// bytes per second. Messages wait for each other, first come, first served.
	Bandwidth float64
	Latency   float64 // seconds from one server to another
	Overhead  int64   // bytes that each message adds
	// Pack is how many bytes a second one core makes ready to be sent, and takes in. These
	// cores are the servers' own, and it comes before tasks. 0: it takes no time.
	Pack float64
	// Lane is what one remote worker can receive or send, in bytes per second; 0: no less
	// than the server.
	Lane float64
}

// Params is the parameter servers. Each has an equal part of every version.
type Params struct {
	// Hosts are the graph servers on whose machines they are, by rank; -1: on a machine of
	// its own, with one core for updates. None counts as one on server 0.
	Hosts []int
	// Weights are the bytes of a version, in all; every server gets each version.
	Weights int64
	Update  float64 // seconds of a core that one version takes, over all parts together
}

// Started tells that a task begins.
type Started struct {
	task.Task
	Server  int
	Seconds float64 // when, from the start
}

// validate reports every problem of c at once.
func (c *Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("simulate: "+format, args...)) }
	if c.Epochs < 1 {
		bad("%d epochs: at least 1 is needed", c.Epochs)
	}
	if len(c.Servers) == 0 {
		bad("no servers")
	}
	n := &c.Net
	if !(n.Bandwidth > 0) && len(c.Servers) > 1 {
		bad("bandwidth %v bytes per second: more than 0 is needed", n.Bandwidth)
	}
	if !(n.Latency >= 0) || n.Overhead < 0 || !(n.Pack >= 0) || !(n.Lane >= 0) {
		bad("latency %v, overhead %d, pack %v, lane %v: none may be below 0", n.Latency, n.Overhead, n.Pack, n.Lane)
	}
	for k, h := range c.Params.Hosts {
		if h < -1 || h >= len(c.Servers) {
			bad("parameter server %d is on graph server %d of %d", k, h, len(c.Servers))
		}
	}
	next := 0
	for i := range c.Servers {
		s := &c.Servers[i]
		if s.Cores < 1 {
			bad("server %d has %d cores", i, s.Cores)
		}
		if s.Own.Lo != next || s.Own.Hi < s.Own.Lo {
			bad("server %d has intervals [%d,%d), behind interval %d", i, s.Own.Lo, s.Own.Hi, next)
		}
		next = s.Own.Hi
		if len(s.Tasks) != s.Own.Len() {
			bad("server %d has tasks of %d intervals of %d", i, len(s.Tasks), s.Own.Len())
		}
		if s.Push != nil && len(s.Push) != len(s.Steps) {
			bad("server %d pushes after %d steps of %d", i, len(s.Push), len(s.Steps))
		}
		for k, tasks := range s.Tasks {
			if len(tasks) != len(s.Steps) {
				bad("interval %d of server %d has %d tasks of %d", k, i, len(tasks), len(s.Steps))
			}
			for _, t := range tasks {
				if !(t.Seconds >= 0) {
					bad("interval %d of server %d has a task of %v seconds", k, i, t.Seconds)
				}
				if t.Remote && s.Slots < 1 {
					bad("server %d has remote tasks and %d slots", i, s.Slots)
				}
				for _, m := range t.Send {
					if m.To < 0 || m.To >= len(c.Servers) || m.To == i || m.Bytes < 0 {
						bad("server %d sends %d bytes to server %d of %d", i, m.Bytes, m.To, len(c.Servers))
					}
				}
			}
		}
	}
	if next != c.Intervals {
		bad("the servers' intervals end at %d of %d", next, c.Intervals)
	}
	return errors.Join(errs...)
}
