package pserver

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"dorylus/cluster/rpc"
	"dorylus/engine/model"
	"dorylus/kernels"
)

// join takes a client in, or back, by its first message. The answer to it is the first
// that next gives. An error is for the caller alone: the run goes on without it.
func (s *shard) join(h *hello, addr string) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if ours := s.runName(); ours != "" && rpc.Later(h.Run, ours) {
		return nil, s.outlived(h, addr, ours)
	}
	if err := s.checkHello(h); err != nil {
		if h.Rank >= 0 {
			s.refused[h.Rank] = err
		}
		return nil, rpc.Refuse("parameter server %d refuses %v at %s: %v", s.cfg.Shard, graph(h.Rank), addr, err)
	}
	c := s.clients[h.Rank]
	if c == nil {
		c = &client{rank: h.Rank, process: h.Process, blocks: kernels.Span{Lo: h.Lo, Hi: h.Hi}, acked: -1}
		s.clients[h.Rank] = c
		delete(s.refused, h.Rank)
	}
	if c.kick != nil {
		close(c.kick) // what is left of the stream before
	}
	if c.away != nil {
		c.away.Stop()
		c.away = nil
	}
	c.kick, c.wake, c.addr = make(chan struct{}), make(chan struct{}, 1), addr
	c.stream++
	c.sent, c.told, c.asked, c.done, c.halted = h.Have, -1, -1, false, false
	c.acked = max(c.acked, h.Acked)
	c.welcome = newMessage(kindWelcome, welcome{Server: s.id, Start: h.Rank == 0 && s.ps == nil})
	c.tell()
	return c, nil
}

// runName is the run that this server belongs to, "" while it is nobody's. mu is held.
func (s *shard) runName() string {
	if s.cfg.Run == "" && s.job != nil {
		return s.job.run
	}
	return s.cfg.Run
}

// outlived turns away a caller of a later attempt at the run, which may call again. If
// nobody of its own attempt is connected, that one is over, and so is this server. mu is
// held.
func (s *shard) outlived(h *hello, addr, ours string) error {
	for _, c := range s.clients {
		if c != nil && c.kick != nil && !c.bye {
			return status.Errorf(codes.Unavailable, "parameter server %d belongs to run %q, of which %v at %s is still connected, and %v at %s to run %q",
				s.cfg.Shard, ours, graph(c.rank), c.addr, graph(h.Rank), addr, h.Run)
		}
	}
	s.failLocked(&rpc.PeerError{Who: graph(h.Rank), Addr: addr, Err: fmt.Errorf("it belongs to run %q, which has begun; this server is left of run %q", h.Run, ours)})
	return status.Errorf(codes.Unavailable, "parameter server %d is left of run %q, and ends now, as %v at %s belongs to run %q: another one has to take its place",
		s.cfg.Shard, ours, graph(h.Rank), addr, h.Run)
}

// checkHello says why a caller does not belong here. mu is held.
func (s *shard) checkHello(h *hello) error {
	cfg, j := &s.cfg, &h.Job
	switch {
	case h.Protocol != protocol:
		return fmt.Errorf("it speaks version %d of the protocol, this server %d: run the same release on all servers", h.Protocol, protocol)
	case cfg.Run != "" && h.Run != cfg.Run:
		return fmt.Errorf("it belongs to run %q, this server to run %q", h.Run, cfg.Run)
	case h.Shard != cfg.Shard || j.Shards != cfg.Shards:
		return fmt.Errorf("it looks for parameter server %d of %d, this is %d of %d: is the list of addresses the same everywhere?", h.Shard, j.Shards, cfg.Shard, cfg.Shards)
	case cfg.Graphs > 0 && j.Graphs != cfg.Graphs:
		return fmt.Errorf("it is one of %d graph servers, this server expects %d", j.Graphs, cfg.Graphs)
	case h.Rank < 0 || h.Rank >= j.Graphs || j.Graphs > maxGraphs:
		return fmt.Errorf("it has rank %d of %d", h.Rank, j.Graphs)
	case h.Lo < 0 || h.Hi < h.Lo || h.Hi > j.Blocks:
		return fmt.Errorf("it has blocks [%d,%d) of %d", h.Lo, h.Hi, j.Blocks)
	case h.Server != "" && h.Server != s.id:
		return fmt.Errorf("this server has been started anew and has lost what it held: resume the run from its last checkpoint")
	}
	if s.job == nil {
		if err := s.adopt(h); err != nil {
			return err
		}
	}
	if s.job.run != h.Run {
		return fmt.Errorf("it belongs to run %q, %v to run %q", h.Run, graph(s.leader), s.job.run)
	}
	if err := differ(s.leader, &s.job.job, j); err != nil {
		return err
	}
	if c := s.clients[h.Rank]; c != nil && (c.process != h.Process || c.blocks != (kernels.Span{Lo: h.Lo, Hi: h.Hi})) {
		return fmt.Errorf("%v has joined already, from %s, as another process", graph(h.Rank), c.addr)
	}
	for _, c := range s.clients {
		if c != nil && c.rank != h.Rank && c.blocks.Lo < h.Hi && h.Lo < c.blocks.Hi {
			return fmt.Errorf("it has blocks [%d,%d), but %v has [%d,%d)", h.Lo, h.Hi, graph(c.rank), c.blocks.Lo, c.blocks.Hi)
		}
	}
	if newest := s.newest(); h.Have > newest || h.Acked > newest {
		return fmt.Errorf("it has version %d, the newest is %d", max(h.Have, h.Acked), newest)
	}
	return nil
}

const (
	maxGraphs = 1 << 16
	maxValues = 1 << 40 // of a model
	maxParams = 1 << 16
)

// adopt takes the first caller's job over. mu is held.
func (s *shard) adopt(h *hello) error {
	j := h.Job
	var all int64
	for _, p := range j.Specs {
		if p.Rows < 0 || p.Cols < 0 || p.Rows > 0 && int64(p.Cols) > maxValues/int64(p.Rows) {
			return fmt.Errorf("parameter %s is %d x %d", p.Name, p.Rows, p.Cols)
		}
		all += values(p)
	}
	if all > maxValues || len(j.Specs) > maxParams || j.Blocks < 1 || j.Ahead < 1 {
		return fmt.Errorf("a model of %d parameters, %d values, %d blocks and %d epochs ahead is beyond what this server takes", len(j.Specs), all, j.Blocks, j.Ahead)
	}
	j.Optim = j.Optim.WithDefaults()
	if err := j.Optim.Validate(); err != nil {
		return err
	}
	s.job, s.leader = &adopted{j, h.Run}, h.Rank
	s.clients = make([]*client, j.Graphs)
	s.slices = Layout(j.Specs, j.Shards)[s.cfg.Shard]
	s.at = map[int]int{}
	for i, x := range s.slices {
		s.at[x.Param] = i
	}
	return nil
}

// adopted is the job of a run.
type adopted struct {
	job
	run string
}

// differ says in what two jobs differ.
func differ(first int, a, b *job) error {
	b.Optim = b.Optim.WithDefaults()
	for _, x := range []struct {
		what string
		a, b any
	}{
		{"graph servers", a.Graphs, b.Graphs}, {"blocks", a.Blocks, b.Blocks}, {"epochs that gradients may be ahead", a.Ahead, b.Ahead},
		{"parameters", len(a.Specs), len(b.Specs)}, {"optimizer", a.Optim, b.Optim},
	} {
		if !reflect.DeepEqual(x.a, x.b) {
			return fmt.Errorf("its settings differ from those of %v: %s: %+v, not %+v", graph(first), x.what, x.b, x.a)
		}
	}
	for p := range a.Specs {
		if !sameSpec(a.Specs[p], b.Specs[p]) {
			return fmt.Errorf("its settings differ from those of %v: parameter %d: %+v, not %+v", graph(first), p, b.Specs[p], a.Specs[p])
		}
	}
	return nil
}

func sameSpec(a, b model.ParamSpec) bool {
	same := slices.Equal(a.Shape, b.Shape)
	a.Shape, b.Shape = nil, nil
	return same && reflect.DeepEqual(a, b)
}

// left notes that a client's stream has ended, and gives it time to come back.
func (s *shard) left(c *client, stream int) {
	s.mu.Lock()
	current, bye := c.stream == stream, c.bye
	s.mu.Unlock()
	if current && bye { // it has all that it wanted
		s.parted(c)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stream != stream || s.err != nil {
		return
	}
	c.kick = nil
	grace := s.cfg.Grace
	c.away = time.AfterFunc(grace, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.stream == stream {
			s.failLocked(&rpc.PeerError{
				Who: graph(c.rank), Addr: c.addr, Err: fmt.Errorf("lost: it has been away for %v", grace),
				Awaited: fmt.Sprintf("gradients of epoch %d", max(s.newest(), 0)),
			})
		}
	})
}

// missing says who has not joined by the deadline, nil if all have.
func (s *shard) missing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	graphs := s.cfg.Graphs
	if s.job != nil {
		graphs = s.job.Graphs
	}
	var who []string
	first := -1
	for rank := range graphs {
		if s.job != nil && s.clients[rank] != nil {
			continue
		}
		if first < 0 {
			first = rank
		}
		name := strconv.Itoa(rank)
		if err := s.refused[rank]; err != nil {
			name += fmt.Sprintf(" (refused: %v)", err)
		}
		who = append(who, name)
	}
	switch {
	case graphs == 0:
		return fmt.Errorf("no graph server has joined within %v", s.cfg.Join)
	case len(who) > 0:
		return &rpc.PeerError{Who: graph(first), Addr: s.cfg.addr(first, "an unknown address"),
			Err: fmt.Errorf("of %d graph servers these have not joined within %v: %s", graphs, s.cfg.Join, strings.Join(who, ", "))}
	case s.ps == nil:
		return fmt.Errorf("graph server 0 has joined, but has not said what to start with within %v", s.cfg.Join)
	}
	covered := 0
	for _, c := range s.clients {
		covered += c.blocks.Len()
	}
	if covered < s.job.Blocks {
		return fmt.Errorf("the graph servers have %d blocks together, the graph has %d", covered, s.job.Blocks)
	}
	return nil
}
