package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dorylus/cluster/certs"
	"dorylus/cluster/member"
	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/cost"
)

// seat is this process's place in a run on several servers.
type seat struct {
	member.Membership
	flags    *serveFlags
	id       *rpc.Identity
	listener net.Listener
	registry member.Registry // nil: none was asked
	kept     string          // --out of the run, of the leader and the others alike
	w        io.Writer       // where it is shown who is there
	quiet    bool            // nothing is to be shown but what goes wrong
}

// leads says whether this process speaks for its run: graph server 0, or the only one.
func (s *seat) leads() bool { return s == nil || s.Role == member.Graph && s.Rank == 0 }

// run is the number of a run among those of --runs, of which servers only see their own.
func (s *seat) run(run int) int {
	if s == nil {
		return run
	}
	return run + s.flags.run
}

// takeSeat finds this server's place among the others, and says which it is.
func (a *app) takeSeat(ctx context.Context, role member.Role, f *serveFlags) (s *seat, err error) {
	s = &seat{flags: f, w: a.err}
	defer func() {
		if err != nil {
			s.leave()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, f.ready)
	defer cancel()
	if f.etcd != "" {
		s.Membership, err = s.lease(ctx, role)
	} else {
		s.Membership, err = a.place(role, f)
	}
	if err != nil {
		return s, err
	}
	if s.id, err = f.identity(s.Membership); err != nil {
		return s, err
	}
	if s.listener == nil {
		if s.listener, err = f.open(ctx, s.Membership); err != nil {
			return s, err
		}
	}
	if s.Meet != "" {
		fmt.Fprintf(a.err, "%s %d asks for the others at %s\n", s.Role.Words(), s.Rank, s.Meet)
		port := s.listener.Addr().(*net.TCPAddr).Port
		if s.Membership, err = member.Exchange(ctx, s.Membership, f.job, port, s.id); err != nil {
			return s, err
		}
	}
	if f.rank < 0 { // a launcher's choice is worth a look
		fmt.Fprintf(a.err, "%s\n", s)
	}
	return s, nil
}

// leave gives back what a seat holds; once the run has the socket, closing it again does
// no harm.
func (s *seat) leave() {
	if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.registry != nil {
		_ = s.registry.Close()
	}
}

// place is the place that flags and the environment say.
func (a *app) place(role member.Role, f *serveFlags) (member.Membership, error) {
	ask, err := f.ask(role)
	if err != nil {
		return member.Membership{}, err
	}
	env := map[string]string{}
	for _, kv := range a.env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	m, err := member.Find(ask, env)
	return m, usage(err)
}

func (f *serveFlags) ask(role member.Role) (member.Ask, error) {
	ask := member.Ask{Role: role, Rank: f.rank, Job: f.job, Port: f.port, Alone: f.alone}
	if f.job == defaultJob {
		ask.Job = "" // the launcher's name, where it has one
	}
	var errG, errP error
	if ask.Graphs, errG = member.ParsePeers(f.graphs); errG != nil {
		errG = fmt.Errorf("--graphs=%s: %w", f.graphs, errG)
	}
	if ask.Params, errP = member.ParsePeers(f.params); errP != nil {
		errP = fmt.Errorf("--params=%s: %w", f.params, errP)
	}
	if err := errors.Join(errG, errP); err != nil {
		return ask, usage(err)
	}
	if f.hosts != "" {
		hosts, err := readHosts(f.hosts)
		if err != nil {
			return ask, err
		}
		ask.Hosts, ask.HostsFile = hosts, f.hosts
	}
	return ask, nil
}

// readHosts reads a host file.
func readHosts(path string) ([]member.Host, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usagef("--hosts=%s: %w", path, bare(err))
	}
	defer file.Close()
	hosts, err := member.ReadHosts(file)
	if err != nil {
		return nil, usagef("--hosts=%s: %w", path, err)
	}
	return hosts, nil
}

// lease finds the place by etcd. The port is open before anybody hears of it.
func (s *seat) lease(ctx context.Context, role member.Role) (m member.Membership, err error) {
	f := s.flags
	ask, err := f.ask(role)
	if err != nil {
		return m, err
	}
	ask.Job = f.job
	at := f.listen
	if at == "" {
		at = ":0"
	}
	if s.listener, err = net.Listen("tcp", at); err != nil {
		return m, fmt.Errorf("listen at --listen=%s: %w", f.listen, err)
	}
	port := s.listener.Addr().(*net.TCPAddr).Port
	server, _, _ := strings.Cut(f.etcd, ",")
	server = server[strings.LastIndexByte(server, '/')+1:]
	addr, err := member.Reachable(server, port)
	if err != nil {
		return m, err
	}
	if s.registry, err = member.OpenEtcd(ctx, f.etcd); err != nil {
		return m, err
	}
	host, err := os.Hostname()
	if err != nil {
		return m, err
	}
	return member.Lease(ctx, s.registry, ask, addr, fmt.Sprintf("%s-%d-%d", host, os.Getpid(), port))
}

// identity is what this server proves itself with.
func (f *serveFlags) identity(m member.Membership) (*rpc.Identity, error) {
	files := rpc.Files{Cert: f.cert, Key: f.key, CA: f.ca}
	switch given := f.cert != "" || f.key != "" || f.ca != ""; {
	case f.insecure && (given || f.certs != ""):
		return nil, usagef("--insecure: leave it out where there are certificates")
	case f.insecure:
		return rpc.Plaintext(), nil
	case given && f.certs != "":
		return nil, usagef("--certs=%s: give either it or --cert, --key and --ca", f.certs)
	case f.certs != "":
		files = certs.Paths(f.certs, rpc.Role(m.Role), m.Rank)
	case files.Cert == "" || files.Key == "" || files.CA == "":
		return nil, usagef("servers prove who they are: give --certs=DIR (made by dorylus-engine certs dev DIR), or --cert, --key and --ca; on one machine --insecure")
	}
	return rpc.LoadIdentity(files)
}

// ownPort is where this server listens.
func ownPort(m member.Membership, f *serveFlags) int {
	if m.Meet == "" {
		if _, text, err := net.SplitHostPort(m.Self()); err == nil {
			if n, err := strconv.Atoi(text); err == nil {
				return n
			}
		}
	}
	return f.port + m.Local
}

// portTime is how long a server that is started again waits for its port: the one before
// may still be ending.
const portTime = 20 * time.Second

// open opens this server's port.
func (f *serveFlags) open(ctx context.Context, m member.Membership) (net.Listener, error) {
	if f.listenFD > 0 {
		file := os.NewFile(uintptr(f.listenFD), "socket")
		defer file.Close()
		l, err := net.FileListener(file)
		if err != nil {
			return nil, fmt.Errorf("--listen-fd=%d: %w", f.listenFD, err)
		}
		return l, nil
	}
	at := f.listen
	if at == "" {
		at = fmt.Sprintf(":%d", ownPort(m, f))
		if f.insecure {
			at = "127.0.0.1" + at
		}
	}
	began := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := net.Listen("tcp", at)
		switch {
		case err == nil:
			return l, nil
		case f.because == "" && !f.goOn, !errors.Is(err, syscall.EADDRINUSE), time.Since(began) > portTime:
			return nil, fmt.Errorf("listen for the other servers: %w; choose another port by --listen", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("listen for the other servers: %w: %w", context.Cause(ctx), err)
		}
	}
}

// servers are the machines that a run hires: parameter servers on a graph server's host
// are none of their own.
func (s *seat) servers(c cost.Servers) cost.Servers {
	if s == nil {
		return c
	}
	hosts := map[string]bool{}
	count := func(addrs []string) int {
		before := len(hosts)
		for _, a := range addrs {
			host, _, err := net.SplitHostPort(a)
			if err != nil {
				host = a
			}
			hosts[host] = true
		}
		return len(hosts) - before
	}
	c.Graphs = count(s.Graphs)
	c.Params = count(s.Params)
	return c
}

// mates are the graph servers on this one's host, and local its number among them.
func (s *seat) mates() (local, mates int) {
	host := func(addr string) string {
		h, _, err := net.SplitHostPort(addr)
		if err != nil {
			return addr
		}
		return h
	}
	for rank, addr := range s.Graphs {
		if s.Rank >= len(s.Graphs) || host(addr) != host(s.Graphs[s.Rank]) {
			continue
		}
		if mates++; rank < s.Rank {
			local++
		}
	}
	return local, mates
}

// settle makes c what this server needs of it: only the leader writes and shows things.
// A run that orchestrators have started again goes on from its checkpoint.
func (s *seat) settle(c *engine.Config) error {
	if s.flags.goOn {
		if c.OutDir == "" && c.Resume == "" {
			return usagef("--continue: name the folder of the run by --out=RUN")
		}
		out := c.OutDir
		if out == "" {
			out = c.Resume
		}
		c.OutDir = out
		switch _, err := lastCheckpoint(out); {
		case err == nil:
			c.Resume = out
		case !errors.Is(err, errNoCheckpoint): // to begin anew would overwrite what can be saved yet
			return fmt.Errorf("--continue: %w; remove it to go on from the one before", err)
		case s.leads():
			if err := forgetRun(out); err != nil {
				return err
			}
		}
	}
	if s.kept = c.OutDir; s.kept == "" {
		s.kept = c.Resume
	}
	s.quiet = c.JSON || c.Progress == "none" || c.Progress == "json"
	if !s.leads() {
		c.OutDir, c.Progress, c.TaskEvents = "", "none", false
	}
	return nil
}

// lost gives the loss of another server the exit code by which a launcher tries again,
// where there is something to go on from or it has said that it would.
func (s *seat) lost(err error) error {
	var peer *rpc.PeerError
	if s == nil || !errors.As(err, &peer) {
		return err
	}
	if s.kept != "" {
		if _, none := lastCheckpoint(s.kept); none == nil {
			return &codedError{exitTryAgain, fmt.Errorf("%w; go on with --resume=%s", err, s.kept)}
		}
	}
	if s.flags.again || s.flags.goOn {
		return &codedError{exitTryAgain, err}
	}
	return err
}

// early is stoppedEarly, for a server that whoever starts lost ones shall start again.
func (s *seat) early(ctx context.Context, err error) error {
	var sig stopped
	if s != nil && (s.flags.again || s.flags.goOn) && ctx.Err() != nil && errors.As(context.Cause(ctx), &sig) {
		return stoppedError(sig, "before training began", true)
	}
	return stoppedEarly(ctx, err)
}

// tells is what a run's events go to: one that a launcher has started again says why.
func (s *seat) tells(l engine.Listener) engine.Listener {
	switch {
	case s == nil || !s.leads():
		return l
	case s.flags.because != "":
		return &restarted{l, "started again, because " + s.flags.because}
	case s.Attempt > 0:
		return &restarted{l, fmt.Sprintf("started again by %s, attempt %d", s.Source, s.Attempt)}
	}
	return l
}

// restarted adds a warning to the beginning of a run.
type restarted struct {
	engine.Listener
	why string
}

func (r *restarted) Event(e engine.Event) {
	r.Listener.Event(e)
	if _, ok := e.(engine.RunStart); ok {
		r.Listener.Event(engine.Warned{Message: r.why})
	}
}

// stoppedElsewhere is the end of a run in which another server was told to stop.
func (s *seat) stoppedElsewhere(checkpoint string) error {
	err := errors.New("another server was told to stop")
	if s == nil || s.kept == "" || s.leads() && checkpoint == "" {
		return err
	}
	return &codedError{exitTryAgain, fmt.Errorf("%w; go on with --resume=%s", err, s.kept)}
}
