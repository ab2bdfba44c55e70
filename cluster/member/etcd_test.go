package member

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/engine/testkit"
)

// board is a Registry in memory, shared by the processes of a test.
type board struct {
	mu      sync.Mutex
	entries []Entry
	changed chan struct{} // closed and replaced with each change
}

// seat is one process's view of a board.
type seat struct {
	*board
	keys []string
}

func (b *board) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

func (s *seat) Register(_ context.Context, key, value string) error {
	s.change(func() { s.entries = append(s.entries, Entry{key, value}) })
	s.keys = append(s.keys, key)
	return nil
}

func (s *seat) Watch(ctx context.Context, prefix string) (<-chan []Entry, error) {
	out := make(chan []Entry)
	go func() {
		defer close(out)
		for {
			s.mu.Lock()
			now, changed := slices.Clone(s.entries), s.changed
			s.mu.Unlock()
			now = slices.DeleteFunc(now, func(e Entry) bool { return !strings.HasPrefix(e.Key, prefix) })
			select {
			case out <- now:
			case <-ctx.Done():
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func (s *seat) Close() error {
	s.change(func() {
		s.entries = slices.DeleteFunc(s.entries, func(e Entry) bool { return slices.Contains(s.keys, e.Key) })
	})
	return nil
}

func newBoard() *board { return &board{changed: make(chan struct{})} }

// join lets n graph servers and p parameter servers find each other.
func join(ctx context.Context, n, p int, open func() (Registry, error)) ([]Membership, error) {
	all, errs := make([]Membership, n+p), make([]error, n+p)
	var wg sync.WaitGroup
	for i := range n + p {
		wg.Go(func() {
			a := Ask{Role: Graph, Graphs: Peers{Count: n}, Params: Peers{Count: p}, Job: "run"}
			if i >= n {
				a.Role = Param
			}
			r, err := open()
			if err == nil {
				all[i], err = Lease(ctx, r, a, fmt.Sprintf("10.0.0.%d:7070", i), fmt.Sprint("process", i))
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", i, err)
		}
	}
	return all, nil
}

// agreed checks that everybody has the same lists and its own place in them.
func agreed(t *testing.T, all []Membership) {
	t.Helper()
	for i, m := range all {
		if !slices.Equal(m.Graphs, all[0].Graphs) || !slices.Equal(m.Params, all[0].Params) {
			t.Errorf("process %d has %v %v, process 0 %v %v", i, m.Graphs, m.Params, all[0].Graphs, all[0].Params)
		}
		if want := fmt.Sprintf("10.0.0.%d:7070", i); m.Self() != want {
			t.Errorf("process %d takes itself for %s, it is at %s", i, m.Self(), want)
		}
	}
}

func TestLease(t *testing.T) {
	testkit.Leaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := newBoard()
	all, err := join(ctx, 4, 2, func() (Registry, error) { return &seat{board: b}, nil })
	if err != nil {
		t.Fatal(err)
	}
	agreed(t, all)
}

func TestLeaseSaysWhoIsMissing(t *testing.T) {
	testkit.Leaks(t)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Lease(short, &seat{board: newBoard()}, Ask{Role: Graph, Graphs: Peers{Count: 2}, Params: Peers{Count: 1}, Job: "run"}, "a:1", "me")
	if want := "job run: in time there came 1 of 2 graph servers and 0 of 1 parameter servers (a:1)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	for want, a := range map[string]Ask{
		"--job":              {Role: Graph},
		"serve graph":        {Job: "j"},
		"--graphs=N":         {Job: "j", Role: Graph},
		"as numbers":         {Job: "j", Role: Graph, Graphs: Peers{[]string{"a:1"}, 1}, Params: Peers{Count: 1}},
		"something else was": {Job: "j", Role: Graph, Graphs: Peers{Count: 1}, Params: Peers{Count: 1}},
	} {
		b := newBoard()
		b.entries = []Entry{{"dorylus/j/x", "something else was written"}}
		if _, err := Lease(t.Context(), &seat{board: b}, a, "a:1", "me"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A server that is gone makes room for the one that replaces it.
func TestLeaseWaitsForLeftoversToGo(t *testing.T) {
	testkit.Leaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := newBoard()
	old := &seat{board: b}
	for i := range 3 {
		if err := old.Register(ctx, fmt.Sprint("dorylus/run/old", i), `{"Role":"graph","Addr":"old:1"}`); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	var all []Membership
	go func() {
		var err error
		all, err = join(ctx, 2, 1, func() (Registry, error) { return &seat{board: b}, nil })
		done <- err
	}()
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	agreed(t, all)
}

func TestRealEtcd(t *testing.T) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("etcd is not installed (Debian: etcd-server)")
	}
	client, peer := "http://"+free(t), "http://"+free(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--data-dir", t.TempDir(), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--log-level", "error")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // killed
	}()
	up(ctx, t, strings.TrimPrefix(client, "http://"))
	var mu sync.Mutex
	var open []Registry
	began := time.Now()
	all, err := join(ctx, 4, 2, func() (Registry, error) {
		r, err := OpenEtcd(ctx, client)
		if err == nil {
			mu.Lock()
			open = append(open, r)
			mu.Unlock()
		}
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("6 servers agreed in %v", time.Since(began))
	agreed(t, all)
	for _, r := range open {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	r, err := OpenEtcd(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	look, stop := context.WithCancel(ctx)
	defer stop()
	left, err := r.Watch(look, "dorylus/run/")
	if err != nil {
		t.Fatal(err)
	}
	if now := <-left; len(now) != 0 {
		t.Errorf("after all have closed there is %v", now)
	}
}

// up waits until somebody listens at addr.
func up(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("etcd does not listen")
		}
	}
}

func TestEtcdThatIsNotThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	at := "http://" + free(t)
	if _, err := OpenEtcd(ctx, at); err == nil || !strings.Contains(err.Error(), "connect to etcd at "+at) {
		t.Errorf("got %v", err)
	}
}

func TestReachable(t *testing.T) {
	if at, err := Reachable("127.0.0.1:2379", 7070); err != nil || at != "127.0.0.1:7070" {
		t.Errorf("got %s, %v", at, err)
	}
}
