package sim

import (
	"fmt"
	"strings"

	"dorylus/engine/sched"
	"dorylus/engine/task"
)

// run is a run in play.
type run struct {
	cfg      *Config
	q        queue
	net      network
	servers  []*server
	params   *paramServers
	left     []int // by epoch: intervals that have not finished it, and servers without its update
	ends     []instant
	steps    []instant
	updating instant
}

// server is one graph server.
type server struct {
	*machine
	r     *run
	rank  int
	cfg   *Server
	sched *sched.Machine
	push  []int64
	done  []map[int]int // by step, epoch: own intervals that have done it
	parts map[int]int   // by version: the parts that are here

	free int // slots
	away []task.Task

	patience *sched.Patience // of an async run
	alarm    instant         // when it is asked again
}

// Run plays c.
func Run(c Config) (*Result, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &run{cfg: &c, left: make([]int, c.Epochs), ends: make([]instant, c.Epochs)}
	r.net = network{q: &r.q, cfg: &c.Net}
	for e := range r.left {
		r.left[e] = c.Intervals + len(c.Servers)
	}
	for rank := range c.Servers {
		s, err := newServer(r, rank)
		if err != nil {
			return nil, fmt.Errorf("simulate server %d: %w", rank, err)
		}
		r.servers = append(r.servers, s)
	}
	r.params = newParamServers(r)
	for _, s := range r.servers {
		s.feed(s.sched.Start())
	}
	for r.q.next() {
	}
	for e, left := range r.left {
		if left > 0 {
			return nil, fmt.Errorf("simulate: nothing happens any more in epoch %d\n%s", e, r)
		}
	}
	return r.result(), nil
}

// String is where all schedulers stand.
func (r *run) String() string {
	var b strings.Builder
	for _, s := range r.servers {
		fmt.Fprintf(&b, "server %d\n%s", s.rank, s.sched)
	}
	return b.String()
}

func newServer(r *run, rank int) (*server, error) {
	c := &r.cfg.Servers[rank]
	s := &server{
		machine: &machine{q: &r.q, cores: c.Cores, idle: c.Cores}, r: r, rank: rank, cfg: c, free: c.Slots,
		push: make([]int64, len(c.Steps)), done: make([]map[int]int, len(c.Steps)), parts: map[int]int{},
	}
	for i := range s.done {
		s.done[i] = map[int]int{}
	}
	if len(r.steps) < len(c.Steps) {
		r.steps = make([]instant, len(c.Steps))
	}
	if c.Own.Len() > 0 {
		copy(s.push, c.Push)
		s.push[len(s.push)-1] = max(s.push[len(s.push)-1], 1) // the losses, if nothing else
	}
	var err error
	s.sched, err = sched.New(sched.Config{
		Intervals: r.cfg.Intervals, Own: c.Own, Steps: c.Steps, Epochs: r.cfg.Epochs,
		Sync: r.cfg.Sync, Staleness: r.cfg.Staleness, Fresh: !r.cfg.Sync,
	})
	if !r.cfg.Sync {
		s.patience, s.bored = sched.NewPatience(r.cfg.Wait), s.goOn
	}
	return s, err
}

// goOn gives cores, which have waited long enough for fresh rows and weights, what can be
// done with older ones.
func (s *server) goOn() {
	late := min(s.idle, s.sched.Late())
	enough, longer := s.patience.Ask(s.q.now.seconds(), late)
	if enough {
		s.feed(s.sched.Step(sched.Input{Idle: late}))
	} else if next := s.q.now + 1 + instantOf(longer); longer > 0 && (s.alarm <= s.q.now || next < s.alarm) {
		s.alarm = next
		s.q.at(next, s.pump)
	}
}

// feed gives tasks to cores, or to remote workers.
func (s *server) feed(tasks []task.Task) {
	for _, t := range tasks {
		work := s.work(t)
		if work.Remote {
			s.away = append(s.away, t)
			continue
		}
		took := instantOf(work.Seconds)
		s.do(false, job{took: took, turn: t.Epoch, start: func() { s.started(t) }, done: func() { s.complete(t, took) }})
	}
	s.launch()
	s.pump()
}

func (s *server) work(t task.Task) *Task { return &s.cfg.Tasks[t.Interval-s.cfg.Own.Lo][t.Step] }

func (s *server) started(t task.Task) {
	if s.r.cfg.Observe != nil {
		s.r.cfg.Observe(Started{Task: t, Server: s.rank, Seconds: s.q.now.seconds()})
	}
}

// ended notes the end of an epoch.
func (s *server) ended(epoch int) {
	if s.patience == nil {
		return
	}
	took := s.r.ends[epoch]
	if epoch > 0 {
		took -= s.r.ends[epoch-1]
	}
	s.patience.Epoch(took.seconds())
}

// launch gives tasks to workers that have none.
func (s *server) launch() {
	for s.free > 0 && len(s.away) > 0 {
		t := s.away[0]
		s.away = s.away[1:]
		s.free--
		work := s.work(t)
		took := instantOf(work.Seconds)
		s.started(t)
		s.r.net.busy(s.machine, work.Down, func() {
			s.r.net.down(s.machine, work.Down, func() {
				s.q.at(s.q.now+took, func() {
					s.r.net.up(s.machine, work.Up, func() {
						s.r.net.busy(s.machine, work.Up, func() {
							s.free++
							s.use.remote += took
							s.complete(t, took)
							s.launch()
						})
					})
				})
			})
		})
	}
}

// complete is the end of a task: what it publishes is on its way, the scheduler knows.
func (s *server) complete(t task.Task, took instant) {
	r := s.r
	r.steps[t.Step] += took
	for _, m := range s.work(t).Send {
		to := r.servers[m.To]
		r.net.send(s.machine, to.machine, m.Bytes, func() {
			to.feed(to.sched.Step(sched.Input{Rows: &sched.Rows{Interval: t.Interval, Step: t.Step, Epoch: t.Epoch}}))
		})
	}
	s.done[t.Step][t.Epoch]++
	if s.done[t.Step][t.Epoch] == s.cfg.Own.Len() {
		delete(s.done[t.Step], t.Epoch)
		if n := s.push[t.Step]; n > 0 {
			r.params.push(s, n, t.Epoch)
		}
	}
	if t.Step == len(s.cfg.Steps)-1 {
		r.count(t.Epoch)
		for _, to := range r.servers {
			if to != s {
				r.net.send(s.machine, to.machine, 0, func() {
					to.feed(to.sched.Step(sched.Input{Finished: &sched.Finish{Interval: t.Interval, Epoch: t.Epoch}}))
				})
			}
		}
	}
	s.feed(s.sched.Step(sched.Input{Done: &t.ID}))
}

// weights is the arrival of a part of a version.
func (s *server) weights(version int) {
	s.parts[version]++
	if s.parts[version] < len(s.r.params.hosts) {
		return
	}
	delete(s.parts, version)
	s.r.count(version - 1)
	s.feed(s.sched.Step(sched.Input{Weights: &version}))
}

// count notes one of the things that an epoch consists of.
func (r *run) count(epoch int) {
	r.left[epoch]--
	if r.left[epoch] == 0 {
		r.ends[epoch] = r.q.now
		for _, s := range r.servers {
			s.ended(epoch)
		}
	}
}
