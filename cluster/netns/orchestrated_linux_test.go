package netns

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// orchestra starts servers as an orchestrator does: each by itself, again whenever it
// ends badly, with the same arguments.
type orchestra struct {
	mu       sync.Mutex
	summary  bytes.Buffer // what graph server 0 prints, the last time
	said     []string
	restarts int
	stopped  bool
}

func (o *orchestra) keep(r *rig, host int, args []string) error {
	for {
		var out, errs bytes.Buffer
		cmd := exec.Command("ip", append([]string{"netns", "exec", r.net.Hosts()[host].Namespace, r.program}, args...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, &out, &errs
		cmd.Env = append(os.Environ(), "TMPDIR="+r.temp)
		err := cmd.Run()
		o.mu.Lock()
		if errs.Len() > 0 {
			o.said = append(o.said, fmt.Sprintf("%s: %v\n%s", r.server(host), err, errs.String()))
		}
		if err == nil && host == 0 {
			o.summary = out
		}
		if err != nil {
			o.restarts++
		}
		tired := o.restarts > 40 || o.stopped
		o.mu.Unlock()
		if err == nil || tired {
			return err
		}
	}
}

func (o *orchestra) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
}

// Without a launcher, servers that come back one by one go on together (serve
// --continue).
func TestOrchestrated(t *testing.T) {
	r := newRig(t, 3, 2, 6)
	train := []string{"--epochs=50", "--model=sage", "--hidden=8"}
	want := r.undisturbed(t, train...)
	var graphs, params []string
	for i, h := range r.net.Hosts() {
		addr := fmt.Sprintf("%s:%d", h.Addr, port)
		if i < r.graphs {
			graphs = append(graphs, addr)
		} else {
			params = append(params, addr)
		}
	}
	var o orchestra
	var running sync.WaitGroup
	errs := make([]error, r.graphs+r.params)
	t.Cleanup(func() {
		o.stop()
		for i := range errs {
			_, _ = r.net.Kill(i) // of a test that has ended early
		}
		running.Wait()
	})
	for i := range errs {
		args := []string{"serve", "graph", fmt.Sprintf("--rank=%d", i)}
		if i >= r.graphs {
			args = []string{"serve", "param", fmt.Sprintf("--rank=%d", i-r.graphs)}
		}
		args = append(args, "--graphs="+strings.Join(graphs, ","), "--params="+strings.Join(params, ","), "--certs="+r.path("certs"),
			"--peer-timeout=3s", "--continue")
		if i < r.graphs {
			args = append(append(args, train...), "--json", "--progress=none", "--checkpoint-every=4", "--out=RUN")
		}
		running.Go(func() { errs[i] = o.keep(r, i, args) })
	}
	for _, host := range []int{1, 3, 0} {
		r.checkpoints(t, 2)
		r.kill(t, host)
	}
	running.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("%s: %v", r.server(i), err)
		}
	}
	if t.Failed() {
		t.Fatalf("the servers said:\n%s", strings.Join(o.said, ""))
	}
	same(t, "after restarts", parse(t, o.summary.String()), want)
	r.nothingLeft(t, "RUN")
	t.Logf("%d starts after a bad end", o.restarts)
}

// checkpoints waits for so many new ones in RUN.
func (r *rig) checkpoints(t *testing.T, n int) {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last := ""; n >= 0; {
		if names, err := os.ReadDir(r.path("RUN/ckpt")); err == nil && len(names) > 0 {
			if name := names[len(names)-1].Name(); name != last {
				last = name
				n--
			}
		}
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatal("no new checkpoint for a minute")
		}
	}
}
