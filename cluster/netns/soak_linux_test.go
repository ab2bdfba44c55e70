package netns

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// minutes is the environment variable that says how long TestSoak lasts.
const minutes = "SOAK"

// soakRun is one of the models that a soak trains, one after the other.
type soakRun struct {
	name  string
	train []string
}

var soakRuns = []soakRun{
	{"gcn", []string{"--epochs=200"}},
	{"gat", []string{"--epochs=60", "--model=gat"}},
	{"sage, clipped", []string{"--epochs=100", "--model=sage", "--clip-norm=1"}},
	{"gcn, 3 layers of 32, layer norm", []string{"--epochs=120", "--layers=3", "--hidden=32", "--norm=layer"}},
}

// soak is what befalls servers at random.
type soak struct {
	r      *rig
	die    *rand.Rand
	counts map[string]int
}

// TestSoak disturbs run after run at random until its time is over: servers and launchers
// are killed, hosts lose their power, links are cut. Each run ends with the bits of the
// undisturbed one, and leaves nothing.
func TestSoak(t *testing.T) {
	text := os.Getenv(minutes)
	if text == "" {
		t.Skipf("SKIPPED: takes half an hour; run it as root by make soak, which sets %s", minutes)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%q: give minutes", minutes, text)
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SOAK_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("SOAK_SEED=%q: %v", s, err)
		}
	}
	t.Logf("seed %d", seed)
	k := &soak{newRig(t, 4, 2, seed), rand.New(rand.NewPCG(seed, 1)), map[string]int{}}
	end := time.Now().Add(time.Duration(n * float64(time.Minute)))
	for run := 0; time.Now().Before(end); run++ {
		k.run(t, fmt.Sprintf("RUN%d", run), soakRuns[run%len(soakRuns)], uint64(run), end)
		if t.Failed() {
			break
		}
	}
	t.Logf("%v", k.counts)
}

// run trains once.
func (k *soak) run(t *testing.T, out string, m soakRun, seed uint64, end time.Time) {
	train := append(slices.Clone(m.train), fmt.Sprintf("--seed=%d", seed))
	want := k.r.undisturbed(t, train...)
	began, before := time.Now(), k.total()
	flags := []string{"--checkpoint-every=5", "--peer-timeout=3s", "--max-restarts=1000", "--out=" + out}
	l := k.r.launch(t, append(train, flags...)...)
	for !l.over(k.pause(end)) {
		l = k.disturb(t, l, out, train, flags)
	}
	code, text := l.wait(time.Minute)
	if code != 0 {
		t.Fatalf("%s, seed %d: exit code %d", m.name, seed, code)
	}
	same(t, m.name, parse(t, text), want)
	k.r.nothingLeft(t, out)
	k.counts["runs"]++
	t.Logf("%s, seed %d: the right bits after %d disturbances in %v", m.name, seed, k.total()-before, time.Since(began).Round(time.Second))
	if err := os.RemoveAll(k.r.path(out)); err != nil {
		t.Error(err)
	}
}

// pause is how long nothing happens: until the end of the run, once the time is over.
func (k *soak) pause(end time.Time) time.Duration {
	d := time.Duration((2 + 8*k.die.ExpFloat64()) * float64(time.Second))
	if time.Now().Add(d).After(end) {
		return 5 * time.Minute
	}
	return d
}

func (k *soak) total() (n int) {
	for what, c := range k.counts {
		if what != "runs" {
			n += c
		}
	}
	return n
}

// disturb lets something happen, and returns the launcher that then is at work.
func (k *soak) disturb(t *testing.T, l *launched, out string, train, flags []string) *launched {
	hosts := k.r.graphs + k.r.params
	host := k.die.IntN(hosts)
	other := (host + 1 + k.die.IntN(hosts-1)) % hosts
	d := time.Duration((1 + 12*k.die.Float64()) * float64(time.Second))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	what := ""
	switch n := k.die.IntN(100); {
	case n < 55:
		what = "kill"
		_, err := k.r.net.Kill(host) // there may be none, between two starts
		must(err)
	case n < 65:
		what = "power loss"
		must(k.r.net.Isolate(host, true))
		_, err := k.r.net.Kill(host)
		must(err)
		l.over(d)
		must(k.r.net.Isolate(host, false))
	case n < 80:
		what = "cut"
		must(k.r.net.Cut(host, other, true))
		l.over(d)
		must(k.r.net.Cut(host, other, false))
	case n < 90:
		what = "freeze"
		pids, err := k.r.net.Processes(host)
		must(err)
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			for _, pid := range pids {
				if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
					t.Fatal(err)
				}
			}
			if sig == syscall.SIGSTOP {
				l.over(d / 2)
			}
		}
	case n < 95:
		what = "launcher killed"
		must(l.cmd.Process.Kill())
	default:
		what = "launcher stopped"
		must(l.cmd.Process.Signal(syscall.SIGTERM))
	}
	k.counts[what]++
	if !strings.HasPrefix(what, "launcher") {
		return l
	}
	l.over(3 * time.Minute)
	if code, _ := l.wait(time.Minute); code == 0 {
		return l // it was done before it heard
	}
	k.r.empty(t)
	again := append(slices.Clone(train), flags...)
	if names, err := os.ReadDir(k.r.path(out + "/ckpt")); err == nil && len(names) > 0 {
		again = append([]string{"--resume=" + out}, flags...)
	} else {
		must(os.RemoveAll(k.r.path(out)))
	}
	return k.r.launch(t, again...)
}
