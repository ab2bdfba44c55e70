package pserver

import (
	"strings"
	"testing"
	"time"

	"dorylus/cluster/certs"
	"dorylus/cluster/rpc"
	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// TestRanksAreProved: with certificates, nobody can be another graph server, nor a graph
// server be taken for a parameter server.
func TestRanksAreProved(t *testing.T) {
	testkit.Leaks(t)
	ca, err := certs.New("dorylus.test/run", time.Hour)
	check(t, err)
	issue := func(role rpc.Role, rank int) *rpc.Identity {
		id, err := ca.Identity(role, rank)
		check(t, err)
		return id
	}
	s, err := NewServer(ServerConfig{Shards: 1, Device: device(t), Join: 20 * time.Second})
	check(t, err)
	l, err := rpc.Listen("127.0.0.1:0", issue(rpc.Param, 0), rpc.Options{})
	check(t, err)
	s.Handle(l)
	l.Serve()
	x := &set{t: t, addrs: []string{l.Addr()}}
	w := x.want(0, 2, 4, kernels.Span{Hi: 4}, optims[0])
	w.Identity = issue(rpc.Graph, 0)
	c := joined(t, w)[0]
	for _, bad := range []struct {
		id     *rpc.Identity
		hosted bool
		want   string
	}{
		{issue(rpc.Graph, 0), false, "the caller says that it is graph server 1, but by its certificate it is graph server 0"},
		{issue(rpc.Param, 1), false, "may not call"},
		{issue(rpc.Graph, 1), true, "it is parameter server 0, want graph server 0"},
	} {
		w := x.want(1, 2, 4, kernels.Span{Lo: 4, Hi: 4}, optims[0])
		w.Identity, w.Hosted, w.Join = bad.id, bad.hosted, 300*time.Millisecond
		if _, err := Connect(t.Context(), w); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
	}
	check(t, s.Close())
	<-c.Updates()
	check(t, c.Close())
	check(t, l.Close())
}
