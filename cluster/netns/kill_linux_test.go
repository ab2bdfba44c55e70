package netns

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// surviving are flags of runs whose servers are killed. Who is killed counts as lost after
// the peer timeout.
var surviving = []string{"--checkpoint-every=4", "--peer-timeout=3s", "--max-restarts=1000", "--task-events", "--out=RUN"}

// kill ends the server on a host by SIGKILL; it must be there.
func (r *rig) kill(t *testing.T, host int) {
	t.Helper()
	if n, err := r.net.Kill(host); n == 0 || err != nil {
		t.Fatalf("kill %s: %d processes, %v", r.server(host), n, err)
	}
}

// again waits until the servers are started again, because of the one on a host.
func (l *launched) again(r *rig, host, from int) int {
	l.t.Helper()
	began := time.Now()
	next, ok := l.await(from, time.Minute, func(line string) bool { return strings.Contains(line, "starting all servers again") })
	if !ok {
		l.t.Fatalf("%s was killed, and the servers were not started again", r.server(host))
	}
	l.mu.Lock()
	line := l.lines[next-1]
	l.mu.Unlock()
	if !strings.Contains(line, r.server(host)+" was killed") {
		l.t.Errorf("%s was killed, and they were started again because: %s", r.server(host), line)
	}
	l.t.Logf("started again after %v", time.Since(began).Round(time.Millisecond))
	return next
}

// Each kind of server is killed in each phase. Where graph server 0 lives, its events say
// which phase it was.
func TestKilledInEachPhase(t *testing.T) {
	const seed = 1
	die := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t, 3, 2, seed)
	train := []string{"--epochs=200"}
	want := r.undisturbed(t, train...)
	l := r.launch(t, append(train, surviving...)...)
	type kill struct {
		host int
		aim  phase
	}
	var kills []kill
	for p := range phases {
		for _, host := range []int{0, 1 + die.IntN(2), 3 + die.IntN(2)} {
			kills = append(kills, kill{host, p})
		}
	}
	die.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	kills = append(kills, kill{1, forward})
	met := map[phase]int{}
	line := 0
	for i := 0; i < len(kills); i++ {
		k := kills[i]
		line = l.mustEpochs(line, 5+die.IntN(4))
		seen := time.Now()
		all := r.attempts(t, "RUN")
		now := all[len(all)-1]
		delay := time.Duration(float64(now.lasts(k.aim)) * (0.3 + 0.4*die.Float64()))
		for p := range k.aim {
			delay += now.lasts(p)
		}
		<-time.After(time.Until(seen.Add(delay)))
		when := time.Now()
		r.kill(t, k.host)
		line = l.again(r, k.host, line)
		if all = r.attempts(t, "RUN"); len(all) < i+1 {
			t.Fatalf("the run was started %d times, want %d", len(all), i+1)
		}
		if k.host == 0 {
			t.Logf("%s: aimed at %v", r.server(k.host), k.aim)
			continue
		}
		p := all[i].at(when)
		met[p]++
		t.Logf("%s: aimed at %v, killed in %v", r.server(k.host), k.aim, p)
		// Epochs are not all as long: what was aimed at and missed is tried again.
		for p := range evaluation {
			if i == len(kills)-1 && i < 24 && met[p] == 0 {
				kills = append(kills, kill{k.host, p})
			}
		}
	}
	same(t, "after kills", l.done(2*time.Minute), want)
	r.nothingLeft(t, "RUN")
	for p := range evaluation {
		if met[p] == 0 {
			t.Errorf("nobody was killed in %v (seed %d)", p, seed)
		}
	}
}

// A server is killed before all are there, and before there is a checkpoint.
func TestKilledWhileStarting(t *testing.T) {
	const seed = 2
	die := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t, 3, 2, seed)
	train := []string{"--epochs=12"}
	want := r.undisturbed(t, train...)
	l := r.launch(t, append(train, surviving...)...)
	line := 0
	for _, host := range []int{0, 2, 3, 0, 1, 4} {
		appeared := time.NewTicker(5 * time.Millisecond)
		for n := 0; n == 0; <-appeared.C {
			var err error
			if n, err = running(r, host); err != nil {
				t.Fatal(err)
			}
		}
		appeared.Stop()
		delay := time.Duration(die.IntN(300)) * time.Millisecond
		<-time.After(delay)
		r.kill(t, host)
		t.Logf("%s: killed about %v after its start", r.server(host), delay)
		line = l.again(r, host, line)
	}
	same(t, "after kills", l.done(time.Minute), want)
	r.nothingLeft(t, "RUN")
}

// running is how many servers run on a host: the shell that becomes one is none yet.
func running(r *rig, host int) (n int, err error) {
	pids, err := r.net.Processes(host)
	for _, pid := range pids {
		if path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && path == r.program {
			n++
		}
	}
	return n, err
}

// A server is killed while graph server 0 writes a checkpoint.
func TestKilledWhileSaving(t *testing.T) {
	const seed = 3
	r := newRig(t, 3, 2, seed)
	train := []string{"--epochs=90"}
	want := r.undisturbed(t, train...)
	l := r.launch(t, append(train, surviving...)...)
	line, half := l.mustEpochs(0, 5), 0
	folder := r.path("RUN/ckpt")
	for _, host := range []int{0, 0, 0, 1, 3, 0, 4} {
		saving(t, folder)
		r.kill(t, host)
		if left, err := filepath.Glob(filepath.Join(folder, ".tmp-*")); err != nil {
			t.Fatal(err)
		} else if host == 0 && len(left) > 0 {
			half++
		}
		line = l.again(r, host, line)
		line = l.mustEpochs(line, 2)
	}
	same(t, "after kills", l.done(time.Minute), want)
	r.nothingLeft(t, "RUN")
	t.Logf("graph server 0 was killed 4 times when it had begun a checkpoint, %d of them had to be thrown away", half)
}

// saving waits until a checkpoint is begun.
func saving(t *testing.T, folder string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "inotify")
	defer file.Close()
	_, err = unix.InotifyAddWatch(fd, folder, unix.IN_CREATE)
	var buf [4096]byte
	if err = errors.Join(err, file.SetReadDeadline(time.Now().Add(time.Minute))); err == nil {
		_, err = file.Read(buf[:])
	}
	if err != nil {
		t.Fatalf("wait for a checkpoint in %s: %v", folder, err)
	}
}
