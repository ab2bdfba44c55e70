package launch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"dorylus/cluster/member"
)

// set is the servers of one attempt.
type set struct {
	o       Options
	out     bytes.Buffer // the leader's standard output
	ended   chan *Exit
	running map[*Server]*process
	told    bool
	exits   []*Exit
	report  *shared
}

// Run starts the servers and returns when all have ended: by themselves, because ctx
// ended and they were sent a signal, or because one was lost. When the graph servers have
// ended, the parameter servers are told to.
func Run(ctx context.Context, servers []Server, o Options) (*Outcome, error) {
	s := &set{o: o.withDefaults(), ended: make(chan *Exit, len(servers)), running: map[*Server]*process{}, report: &shared{w: o.Err}}
	for i := range servers {
		if err := s.start(&servers[i]); err != nil {
			s.end(syscall.SIGKILL)
			s.collect()
			return nil, err
		}
	}
	s.stay(ctx)
	return &Outcome{s.exits, s.out.Bytes()}, nil
}

func (s *set) start(srv *Server) error {
	var out io.Writer = newWire(srv, s.report)
	if srv.leads() {
		out = &s.out
	}
	p, err := begin(srv, out, s.report, s.ended)
	if err == nil {
		s.running[srv] = p
	}
	return err
}

// stay waits for all ends, and brings them about where it has to.
func (s *set) stay(ctx context.Context) {
	stop := ctx.Done()
	var late <-chan time.Time
	var timer *time.Timer
	limit := func(d time.Duration) {
		if timer != nil {
			timer.Stop()
		}
		timer = time.NewTimer(d)
		late = timer.C
	}
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	lost, over, next := false, false, syscall.SIGKILL
	for len(s.running) > 0 {
		select {
		case e := <-s.ended:
			s.take(e)
			switch {
			case s.told || lost || len(s.running) == 0:
			case e.weight() > 0:
				lost = true
				limit(s.o.LossGrace)
				s.say("%s; waiting for the others to end", e)
			}
			if !over && s.only(member.Param) {
				over = true
				if s.well() { // they have been told goodbye, and end by themselves
					next = syscall.SIGTERM
				} else {
					s.end(syscall.SIGTERM)
				}
				limit(s.o.IdleGrace)
			}
		case <-stop:
			stop = nil
			if !s.told {
				s.end(s.o.Signal())
				limit(s.o.StopGrace)
			}
		case <-late:
			if late = nil; next != syscall.SIGKILL {
				s.end(next)
				next = syscall.SIGKILL
				limit(s.o.IdleGrace)
				continue
			}
			s.say("killing what has not ended in time: %s", s.names())
			s.end(syscall.SIGKILL)
		}
	}
}

// well says whether all that have ended have ended well.
func (s *set) well() bool {
	for _, e := range s.exits {
		if e.weight() > 0 {
			return false
		}
	}
	return true
}

// only says whether all that run have this role.
func (s *set) only(r member.Role) bool {
	for srv := range s.running {
		if srv.Role != r {
			return false
		}
	}
	return true
}

// end sends a signal to all that run.
func (s *set) end(sig syscall.Signal) {
	s.told = true
	for _, p := range s.running {
		if sig == syscall.SIGKILL {
			p.kill()
		} else {
			p.send(sig)
		}
	}
}

func (s *set) take(e *Exit) {
	if p := s.running[e.Server]; p != nil && p.wired != nil {
		_ = p.wired.Close()
	}
	delete(s.running, e.Server)
	e.Told = s.told
	s.exits = append(s.exits, e)
}

// collect waits for all that run.
func (s *set) collect() {
	for len(s.running) > 0 {
		s.take(<-s.ended)
	}
}

func (s *set) say(format string, args ...any) {
	fmt.Fprintf(s.report, "launch: "+format+"\n", args...)
}

func (s *set) names() string {
	var names []string
	for srv := range s.running {
		names = append(names, srv.Name())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Restarts says how a set is started again.
type Restarts struct {
	Max int
	// Servers are those of an attempt, 0 being the first; why says what ended the one
	// before.
	Servers func(attempt int, why string) ([]Server, error)
}

// Supervise runs a set, and again whenever a server was lost, up to r.Max times. The
// error of the last outcome is for Check.
func Supervise(ctx context.Context, r Restarts, o Options) (*Outcome, error) {
	why := ""
	for attempt := 0; ; attempt++ {
		servers, err := r.Servers(attempt, why)
		if err != nil {
			return nil, err
		}
		out, err := Run(ctx, servers, o)
		if err != nil || ctx.Err() != nil || !out.Lost() || attempt == r.Max {
			return out, err
		}
		why = out.Cause().String()
		fmt.Fprintf(&shared{w: o.Err}, "launch: starting all servers again (%d of %d): %s\n", attempt+1, r.Max, why)
	}
}
