package rpc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"dorylus/cluster/certs"
	"dorylus/cluster/rpc"
	"dorylus/engine/testkit"
)

const patience = 10 * time.Second

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// echo is a service that answers what it is sent.
func echo(roles ...rpc.Role) rpc.Service {
	return rpc.Service{
		Name: "test.Echo", Roles: roles,
		Calls: map[string]func(context.Context, *rpc.Message) (*rpc.Message, error){
			"Once": func(_ context.Context, m *rpc.Message) (*rpc.Message, error) { return m, nil },
			"No":   func(context.Context, *rpc.Message) (*rpc.Message, error) { return nil, errors.New("epoch 3 is over") },
			"Who": func(ctx context.Context, m *rpc.Message) (*rpc.Message, error) {
				who, _ := rpc.Caller(ctx)
				return &rpc.Message{Head: []byte(who.String())}, rpc.Claim(ctx, rpc.Who{Role: rpc.Graph, Rank: int(m.Kind)})
			},
		},
		Streams: map[string]func(rpc.Stream) error{
			"All": func(s rpc.Stream) error {
				for {
					m, err := s.Recv()
					if err != nil {
						return err
					}
					if err := s.Send(m); err != nil {
						return err
					}
				}
			},
		},
	}
}

func serve(t *testing.T, id *rpc.Identity, svc rpc.Service, o rpc.Options) string {
	t.Helper()
	s, err := rpc.Listen("127.0.0.1:0", id, o)
	check(t, err)
	s.Handle(svc)
	s.Serve()
	t.Cleanup(func() { check(t, s.Close()) })
	return s.Addr()
}

func dial(t *testing.T, addr string, id *rpc.Identity, want rpc.Who, o rpc.Options) *grpc.ClientConn {
	t.Helper()
	cc, err := rpc.Dial(addr, id, want, o)
	check(t, err)
	t.Cleanup(func() { cc.Close() })
	return cc
}

func identity(t *testing.T, a *certs.Authority, role rpc.Role, rank int) *rpc.Identity {
	t.Helper()
	id, err := a.Identity(role, rank)
	check(t, err)
	return id
}

func authority(t *testing.T, run string) *certs.Authority {
	t.Helper()
	a, err := certs.New(run, time.Hour)
	check(t, err)
	return a
}

func TestMessagesArriveAsTheyWere(t *testing.T) {
	testkit.Leaks(t)
	a := authority(t, certs.DevRun)
	for name, ids := range map[string][2]*rpc.Identity{
		"tls":   {identity(t, a, rpc.Graph, 0), identity(t, a, rpc.Graph, 1)},
		"plain": {rpc.Plaintext(), rpc.Plaintext()},
	} {
		t.Run(name, func(t *testing.T) {
			var here, there rpc.Traffic
			addr := serve(t, ids[0], echo(rpc.Graph), rpc.Options{Traffic: &there})
			cc := dial(t, addr, ids[1], rpc.Who{Role: rpc.Graph, Rank: 0}, rpc.Options{Traffic: &here})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			check(t, rpc.Healthy(ctx, cc, "test.Echo"))
			if err := rpc.Healthy(ctx, cc, "test.Other"); err == nil {
				t.Error("a service that is not there is healthy")
			}
			s, err := rpc.Open(ctx, cc, "/test.Echo/All")
			check(t, err)
			big := bytes.Repeat([]byte{1, 2, 3}, 1<<20)
			for _, m := range []*rpc.Message{{Kind: 3, Head: []byte("h")}, {Parts: [][]byte{{}, big, {4}}}} {
				want, err := m.Append(nil)
				check(t, err)
				check(t, s.Send(m))
				got, err := s.Recv()
				check(t, err)
				have, err := got.Append(nil)
				check(t, err)
				once, err := rpc.Call(ctx, cc, "/test.Echo/Once", m)
				check(t, err)
				have2, err := once.Append(nil)
				check(t, err)
				if !bytes.Equal(have, want) || !bytes.Equal(have2, want) {
					t.Errorf("%d bytes were sent, %d and %d came back, or they differ", len(want), len(have), len(have2))
				}
			}
			check(t, s.CloseSend())
			if _, err := s.Recv(); err != io.EOF {
				t.Errorf("after the end: %v, want EOF", err)
			}
			if n := int64(2 * len(big)); here.Sent() < n || there.Sent() < n || here.Sent() > n*101/100 || there.Received() < n {
				t.Errorf("counted %d bytes there, %d back, want a little more than %d each", here.Sent(), there.Sent(), n)
			}
			_, err = rpc.Call(ctx, cc, "/test.Echo/No", &rpc.Message{})
			if err == nil || rpc.Passing(err) || rpc.Text(err) != "epoch 3 is over" {
				t.Errorf("a handler's error arrives as %v (passing: %v)", err, rpc.Passing(err))
			}
		})
	}
}

func TestCallersAreKnown(t *testing.T) {
	testkit.Leaks(t)
	a := authority(t, certs.DevRun)
	addr := serve(t, identity(t, a, rpc.Param, 0), echo(rpc.Graph), rpc.Options{})
	server := rpc.Who{Role: rpc.Param, Rank: 0}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask := func(id *rpc.Identity, kind uint16) (string, error) {
		m, err := rpc.Call(ctx, dial(t, addr, id, server, rpc.Options{}), "/test.Echo/Who", &rpc.Message{Kind: kind}, grpc.WaitForReady(true))
		if err != nil {
			return "", err
		}
		return string(m.Head), nil
	}
	if got, err := ask(identity(t, a, rpc.Graph, 5), 5); err != nil || got != "graph server 5" {
		t.Errorf("graph server 5 is %q, %v", got, err)
	}
	if got, err := ask(identity(t, a, rpc.Graph, rpc.AnyRank), 5); err != nil || got != "graph server of any rank" {
		t.Errorf("any graph server is %q, %v", got, err)
	}
	if _, err := ask(identity(t, a, rpc.Graph, 4), 5); err == nil || rpc.Passing(err) || !strings.Contains(err.Error(), "it is graph server 4, want graph server 5") {
		t.Errorf("graph server 4 says it is 5: %v", err)
	}
	if _, err := ask(identity(t, a, rpc.Param, 1), 1); err == nil || rpc.Passing(err) || !strings.Contains(err.Error(), "parameter server 1 may not call test.Echo") {
		t.Errorf("a parameter server calls what is for graph servers: %v", err)
	}
}

// Every way to be the wrong one ends with an error that says which.
func TestStrangersAreRefused(t *testing.T) {
	testkit.Leaks(t)
	a, b, other := authority(t, certs.DevRun), authority(t, certs.DevRun), authority(t, "dorylus.local/other")
	server := identity(t, a, rpc.Graph, 0)
	addr := serve(t, server, echo(rpc.Graph), rpc.Options{})
	zero := rpc.Who{Role: rpc.Graph, Rank: 0}
	mixed := func(from, trust *certs.Authority) *rpc.Identity { // certified by one, trusts the other
		dirs := [2]string{t.TempDir(), t.TempDir()}
		for i, x := range []*certs.Authority{from, trust} {
			check(t, x.Save(dirs[i], rpc.Graph, 1, nil))
		}
		f := certs.Paths(dirs[0], rpc.Graph, 1)
		f.CA = certs.Paths(dirs[1], rpc.Graph, 1).CA
		id, err := rpc.LoadIdentity(f)
		check(t, err)
		return id
	}
	for name, c := range map[string]struct {
		id   *rpc.Identity
		want rpc.Who
		says string
	}{
		"another authority":     {identity(t, b, rpc.Graph, 1), zero, "unknown authority"},
		"server does not trust": {mixed(b, a), zero, "bad certificate"},
		"another rank":          {identity(t, a, rpc.Graph, 1), rpc.Who{Role: rpc.Graph, Rank: 2}, "it is graph server 0, want graph server 2; is the list of addresses"},
		"another role":          {identity(t, a, rpc.Graph, 1), rpc.Who{Role: rpc.Param, Rank: 0}, "it is graph server 0, want parameter server 0"},
		"another run":           {mixed(other, a), zero, "is of run dorylus.local/dev, ours of dorylus.local/other"},
		"plain text to TLS":     {rpc.Plaintext(), zero, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var err error
			for range 50 {
				cc := dial(t, addr, c.id, c.want, rpc.Options{})
				if _, err = rpc.Call(ctx, cc, "/test.Echo/Once", &rpc.Message{}); err == nil || strings.Contains(err.Error(), c.says) {
					break
				}
				// With TLS 1.3 a client may find the connection closed before it has read why.
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want an error with %q", err, c.says)
			}
		})
	}
	// And a bare TLS client without a certificate gets nothing.
	raw, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err == nil {
		_, err = raw.Read(make([]byte, 1))
		raw.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: %v", err)
	}
	old, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err == nil {
		old.Close()
		t.Error("TLS 1.2 was accepted")
	}
}

func TestPlainTextOnLoopbackOnly(t *testing.T) {
	testkit.Leaks(t)
	for _, addr := range []string{"0.0.0.0:0", ":0", "10.1.2.3:7000", "graph-0.example:7000", "[::]:0"} {
		if s, err := rpc.Listen(addr, rpc.Plaintext(), rpc.Options{}); err == nil || !strings.Contains(err.Error(), "loopback addresses only") {
			t.Errorf("listen on %s: %v", addr, err)
			if err == nil {
				s.Close()
			}
		}
		if cc, err := rpc.Dial(addr, rpc.Plaintext(), rpc.Who{Role: rpc.Graph}, rpc.Options{}); err == nil || !strings.Contains(err.Error(), "loopback addresses only") {
			t.Errorf("call %s: %v", addr, err)
			if err == nil {
				cc.Close()
			}
		}
	}
	lis, err := net.Listen("tcp", "0.0.0.0:0")
	check(t, err)
	defer lis.Close()
	if _, err := rpc.Listen("", rpc.Plaintext(), rpc.Options{Listener: lis}); err == nil {
		t.Error("plain text on a listener of all addresses was accepted")
	}
	if _, err := rpc.Listen("127.0.0.1:0", nil, rpc.Options{}); err == nil || !strings.Contains(err.Error(), "no identity") {
		t.Errorf("without an identity: %v", err)
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		s, err := rpc.Listen(addr, rpc.Plaintext(), rpc.Options{})
		check(t, err)
		check(t, s.Close()) // never served
	}
}

// New connections use what the files hold then; files that do not fit each other are
// passed over.
func TestFilesAreFollowed(t *testing.T) {
	testkit.Leaks(t)
	dir := t.TempDir()
	a, b := authority(t, certs.DevRun), authority(t, certs.DevRun)
	check(t, a.Save(dir, rpc.Graph, 0, nil))
	id, err := rpc.LoadIdentity(certs.Paths(dir, rpc.Graph, 0))
	check(t, err)
	addr := serve(t, id, echo(rpc.Graph), rpc.Options{})
	works := func(a *certs.Authority) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := rpc.Call(ctx, dial(t, addr, identity(t, a, rpc.Graph, 1), rpc.Who{Role: rpc.Graph, Rank: 0}, rpc.Options{}), "/test.Echo/Once", &rpc.Message{})
		return err
	}
	check(t, works(a))
	f := certs.Paths(dir, rpc.Graph, 0)
	good, err := os.ReadFile(f.Key)
	check(t, err)
	check(t, os.WriteFile(f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("half")}), 0o600))
	if err := works(a); err != nil {
		t.Errorf("while a file is being replaced: %v", err)
	}
	check(t, os.WriteFile(f.Key, good, 0o600))
	for _, name := range []string{f.Cert, f.Key, f.CA} {
		check(t, os.Remove(name))
	}
	check(t, b.Save(dir, rpc.Graph, 0, nil))
	if err := works(b); err != nil {
		t.Errorf("after the change, by the new authority: %v", err)
	}
	if err := works(a); err == nil {
		t.Error("after the change the old authority is still believed")
	}
	if _, err := rpc.LoadIdentity(rpc.Files{Cert: filepath.Join(dir, "none"), Key: f.Key, CA: f.CA}); err == nil {
		t.Error("a missing file was read")
	}
}
