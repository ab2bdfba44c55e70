package netns

import (
	"strings"
	"testing"
	"time"
)

const (
	exitAgain = 75
	// breaks is how long TCP keeps a connection whose packets vanish; then the servers'
	// peer timeout begins.
	breaks = 10 * time.Second
)

// partitioned are flags of runs that last longer than what befalls them.
func partitioned(patience time.Duration) []string {
	return []string{"--epochs=60", "--checkpoint-every=5", "--peer-timeout=" + patience.String(), "--out=RUN"}
}

// cutFor cuts links for a time.
func cutFor(t *testing.T, d time.Duration, cut func(yes bool) error) {
	t.Helper()
	if err := cut(true); err != nil {
		t.Fatal(err)
	}
	<-time.After(d)
	if err := cut(false); err != nil {
		t.Fatal(err)
	}
}

// Links that come back in time are forgotten: whether TCP has waited for them, or
// connections have broken and been made anew.
func TestShortPartition(t *testing.T) {
	const patience = 10 * time.Second
	r := newRig(t, 4, 2, 2)
	want := r.undisturbed(t, "--epochs=60")
	l := r.launch(t, partitioned(patience)...)
	at := l.mustEpochs(0, 5)
	for _, c := range []struct {
		what string
		d    time.Duration
		cut  func(yes bool) error
	}{
		{"graph 1 and graph 2, within TCP's patience", 3 * time.Second, func(yes bool) error { return r.net.Cut(1, 2, yes) }},
		{"graph 1 and graph 2, beyond it", breaks + 3*time.Second, func(yes bool) error { return r.net.Cut(1, 2, yes) }},
		{"graph 1 and parameter 0", breaks + 3*time.Second, func(yes bool) error { return r.net.Cut(1, 4, yes) }},
		{"graph 0 and all", breaks + 3*time.Second, func(yes bool) error { return r.net.Isolate(0, yes) }},
	} {
		began := time.Now()
		cutFor(t, c.d, c.cut)
		at = l.mark()
		at = l.mustEpochs(at, 3)
		t.Logf("%s: cut for %v, 3 epochs later after %v", c.what, c.d, time.Since(began).Round(time.Millisecond))
	}
	same(t, "after partitions that have passed", l.done(time.Minute), want)
	if said := l.said(); said != "" {
		t.Errorf("servers said:\n%s", said)
	}
	r.nothingLeft(t, "RUN")
}

// Of a partition that stays all servers hear who is out of reach, and end so that the run
// can be gone on with.
func TestLongPartition(t *testing.T) {
	const patience = 5 * time.Second
	for _, c := range []struct {
		name string
		cut  func(r *rig, yes bool) error
		who  []int // either is to be named
	}{
		{"graph 1 and graph 2", func(r *rig, yes bool) error { return r.net.Cut(1, 2, yes) }, []int{1, 2}},
		{"graph 0 and parameter 1", func(r *rig, yes bool) error { return r.net.Cut(0, 5, yes) }, []int{0, 5}},
		{"graph 3 and all", func(r *rig, yes bool) error { return r.net.Isolate(3, yes) }, []int{3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 4, 2, 3)
			want := r.undisturbed(t, "--epochs=60")
			l := r.launch(t, partitioned(patience)...)
			l.mustEpochs(0, 12)
			if err := c.cut(r, true); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			code, _ := l.wait(2 * time.Minute)
			t.Logf("ended after %v", time.Since(began).Round(time.Millisecond))
			if code != exitAgain {
				t.Errorf("exit code %d, want %d", code, exitAgain)
			}
			r.named(t, l, c.who)
			r.nothingLeft(t)
			if err := c.cut(r, false); err != nil {
				t.Fatal(err)
			}
			l = r.launch(t, "--resume=RUN", "--out=RUN", "--peer-timeout="+patience.String())
			same(t, "resumed", l.done(time.Minute), want)
			r.nothingLeft(t, "RUN")
		})
	}
}

// named fails if a server has ended without naming one of those that were to blame. A
// server that is cut off from all others may name any.
func (r *rig) named(t *testing.T, l *launched, who []int) {
	t.Helper()
	said := l.said()
	t.Logf("servers said:\n%s", said)
	for i := range r.net.Hosts() {
		if len(who) == 1 && who[0] == i {
			continue
		}
		// The launcher says the leader's words at its end.
		mark := "[graph " + string(rune('0'+i)) + "] dorylus-engine: "
		switch {
		case i == 0:
			mark = "dorylus-engine: "
		case i >= r.graphs:
			mark = "[param " + string(rune('0'+i-r.graphs)) + "] dorylus-engine: "
		}
		ok := false
		for line := range strings.Lines(said) {
			for _, w := range who {
				ok = ok || strings.HasPrefix(line, mark) && strings.Contains(line, r.server(w))
			}
		}
		if !ok {
			t.Errorf("%s does not name %s", r.server(i), r.server(who[0]))
		}
	}
}

// A host that loses its power answers nothing, not even that its port is closed.
func TestHostVanishes(t *testing.T) {
	r := newRig(t, 3, 2, 4)
	want := r.undisturbed(t, "--epochs=60")
	l := r.launch(t, append(partitioned(5*time.Second), "--max-restarts=2")...)
	at := 0
	for _, host := range []int{2, 4} {
		at = l.mustEpochs(at, 8)
		if err := r.net.Isolate(host, true); err != nil {
			t.Fatal(err)
		}
		n, err := r.net.Kill(host)
		if n == 0 || err != nil {
			t.Fatalf("nothing runs on host %d: %v", host, err)
		}
		began, ok := time.Now(), false
		if at, ok = l.await(at, time.Minute, func(line string) bool { return strings.Contains(line, "starting all servers again") }); !ok {
			t.Fatal("it was not started again")
		}
		t.Logf("%s: started again after %v", r.server(host), time.Since(began).Round(time.Millisecond))
		if err := r.net.Isolate(host, false); err != nil {
			t.Fatal(err)
		}
		if last := l.lines[at-1]; !strings.Contains(last, r.server(host)) {
			t.Errorf("started again because of %q, want %s", last, r.server(host))
		}
	}
	same(t, "after hosts that vanished", l.done(time.Minute), want)
	r.nothingLeft(t, "RUN")
}
