package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"dorylus/cluster/rpc"
)

const meetService, meetMethod = "dorylus.cluster.v1.Meet", "/dorylus.cluster.v1.Meet/Exchange"

// introduction is what a server says of itself where all meet, and list the answer. The
// first address of Graphs lacks its host: who asked knows it.
type introduction struct {
	Job    string
	Role   Role
	Rank   int
	Graphs int
	Params int
	Port   string
}

type list struct{ Graphs, Params []string }

// Exchange fills in the addresses of a run whose launcher does not tell them: all
// introduce themselves to graph server 0 at m.Meet, each with the port on which it
// listens, and are told who is where once the last one has come. Where ctx ends before,
// graph server 0 says who is missing. It does nothing where m.Meet is "".
func Exchange(ctx context.Context, m Membership, job string, port int, id *rpc.Identity) (Membership, error) {
	if m.Meet == "" {
		return m, nil
	}
	me := introduction{job, m.Role, m.Rank, len(m.Graphs), len(m.Params), fmt.Sprint(port)}
	var l list
	var err error
	if m.Role == Graph && m.Rank == 0 {
		l, err = host(ctx, m.Meet, me, id)
	} else {
		l, err = visit(ctx, m.Meet, me, id)
	}
	if err != nil {
		return m, err
	}
	m.Graphs, m.Params, m.Meet = l.Graphs, l.Params, ""
	return m, m.check()
}

// visit introduces a server and waits for the answer.
func visit(ctx context.Context, meet string, me introduction, id *rpc.Identity) (list, error) {
	var l list
	bad := func(err error) (list, error) {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer in time")
		}
		return l, fmt.Errorf("ask graph server 0 at %s where the others are: %s", meet, rpc.Text(err))
	}
	conn, err := rpc.Dial(meet, id, rpc.Who{Role: rpc.Graph, Rank: 0}, rpc.Options{})
	if err != nil {
		return bad(err)
	}
	defer conn.Close()
	head, err := json.Marshal(me)
	if err != nil {
		return bad(err)
	}
	s, err := rpc.Open(ctx, conn, meetMethod, grpc.WaitForReady(true))
	if err != nil {
		return bad(err)
	}
	if err := s.Send(&rpc.Message{Head: head}); err != nil {
		return bad(err)
	}
	answer, err := s.Recv()
	if err != nil {
		return bad(err)
	}
	if err := json.Unmarshal(answer.Head, &l); err != nil {
		return bad(err)
	}
	if len(l.Graphs) != me.Graphs || len(l.Params) != me.Params {
		return bad(fmt.Errorf("it lists %d graph servers and %d parameter servers, want %d and %d", len(l.Graphs), len(l.Params), me.Graphs, me.Params))
	}
	at, _, err := net.SplitHostPort(meet)
	if err != nil {
		return bad(err)
	}
	l.Graphs[0] = at + l.Graphs[0] // ":7070"
	if strings.Contains(at, ":") {
		l.Graphs[0] = "[" + at + "]" + strings.TrimPrefix(l.Graphs[0], at)
	}
	return l, s.CloseSend() // graph server 0 may go
}

// meeting is the side of graph server 0.
type meeting struct {
	me   introduction
	full chan struct{} // closed when all are there
	done chan struct{} // closed when all others have been told

	mu    sync.Mutex
	known list
	left  int // not here yet
	told  int
}

// host waits for everybody and tells all.
func host(ctx context.Context, meet string, me introduction, id *rpc.Identity) (list, error) {
	m := &meeting{me: me, full: make(chan struct{}), done: make(chan struct{}), left: me.Graphs + me.Params - 1}
	m.known = list{make([]string, me.Graphs), make([]string, me.Params)}
	m.known.Graphs[0] = ":" + me.Port
	srv, err := rpc.Listen(meet, id, rpc.Options{})
	if err != nil {
		return list{}, fmt.Errorf("wait for the other servers: %w", err)
	}
	srv.Handle(rpc.Service{Name: meetService, Roles: []rpc.Role{rpc.Graph, rpc.Param}, Streams: map[string]func(rpc.Stream) error{"Exchange": m.greet}})
	srv.Serve()
	select {
	case <-m.done:
	case <-ctx.Done():
		err = fmt.Errorf("wait for the other servers at %s: %s did not come in time", meet, m.missing())
	}
	if err := errors.Join(err, srv.Close()); err != nil { // after which no handler runs
		return list{}, err
	}
	own, _, err := net.SplitHostPort(meet)
	if err != nil {
		return list{}, err
	}
	known := list{slices.Clone(m.known.Graphs), slices.Clone(m.known.Params)}
	known.Graphs[0] = net.JoinHostPort(own, me.Port)
	return known, nil
}

// greet takes an introduction, and answers when all are here.
func (m *meeting) greet(s rpc.Stream) error {
	msg, err := s.Recv()
	if err != nil {
		return err
	}
	var in introduction
	if err := json.Unmarshal(msg.Head, &in); err != nil {
		return rpc.Refuse("introduction: %v", err)
	}
	if err := rpc.Claim(s.Context(), rpc.Who{Role: rpc.Role(in.Role), Rank: in.Rank}); err != nil {
		return err
	}
	from, ok := peer.FromContext(s.Context())
	if !ok {
		return rpc.Refuse("introduction: where from?")
	}
	at, _, err := net.SplitHostPort(from.Addr.String())
	if err != nil {
		return rpc.Refuse("introduction from %v: %v", from.Addr, err)
	}
	if err := m.enter(in, net.JoinHostPort(at, in.Port)); err != nil {
		return err
	}
	select {
	case <-m.full:
	case <-s.Context().Done():
		if m.leave(in) {
			return s.Context().Err()
		}
	}
	defer m.count()
	head, err := json.Marshal(m.known)
	if err != nil {
		return err
	}
	if err := s.Send(&rpc.Message{Head: head}); err != nil {
		return err
	}
	_, _ = s.Recv() // it has read the list, or is gone
	return nil
}

// slot is where the address of a server belongs.
func (m *meeting) slot(in introduction) (*string, error) {
	peers := m.known.Graphs
	if in.Role == Param {
		peers = m.known.Params
	}
	switch me := m.me; {
	case in.Job != me.Job:
		return nil, rpc.Refuse("it belongs to job %q, this is %q", in.Job, me.Job)
	case in.Graphs != me.Graphs || in.Params != me.Params:
		return nil, rpc.Refuse("it knows of %d graph and %d parameter servers, graph server 0 of %d and %d", in.Graphs, in.Params, me.Graphs, me.Params)
	case in.Role != Graph && in.Role != Param || in.Rank < 0 || in.Rank >= len(peers) || in.Role == Graph && in.Rank == 0:
		return nil, rpc.Refuse("there is no %s %d to come", in.Role.Words(), in.Rank)
	}
	return &peers[in.Rank], nil
}

func (m *meeting) enter(in introduction, addr string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.slot(in)
	if err != nil {
		return err
	}
	if *p != "" {
		return rpc.Refuse("%s %d is here already, at %s: two processes have its rank", in.Role.Words(), in.Rank, *p)
	}
	*p = addr
	if m.left--; m.left == 0 {
		close(m.full)
	}
	return nil
}

// leave takes back what a server said that has gone again before all were there. It is
// false once they are.
func (m *meeting) leave(in introduction) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.slot(in)
	if m.left == 0 || err != nil {
		return false
	}
	*p = ""
	m.left++
	return true
}

// count counts somebody who has been told.
func (m *meeting) count() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told++; m.told == m.me.Graphs+m.me.Params-1 {
		close(m.done)
	}
}

// missing are the servers that have not come.
func (m *meeting) missing() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for i, a := range m.known.Graphs {
		if a == "" {
			names = append(names, fmt.Sprintf("%s %d", Graph.Words(), i))
		}
	}
	for i, a := range m.known.Params {
		if a == "" {
			names = append(names, fmt.Sprintf("%s %d", Param.Words(), i))
		}
	}
	if len(names) == 0 {
		return "somebody who has not read the answer"
	}
	return strings.Join(names, ", ")
}
