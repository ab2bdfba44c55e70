package netns

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// launched is a launcher at work.
type launched struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   bytes.Buffer
	ended chan struct{} // closed

	mu      sync.Mutex
	lines   []string // standard error
	changed chan struct{}
	last    bool // no more lines will come
}

// launch starts all servers, on their hosts.
func (r *rig) launch(t *testing.T, args ...string) *launched {
	t.Helper()
	all := append([]string{"launch", "ssh", "--hosts=" + r.path("hosts"), "--ssh=" + r.path("remote"), "--program=" + r.program,
		"--dir=" + r.dir, "--certs=" + r.path("certs"), "--json", "--progress=json"}, args...)
	l := &launched{t: t, cmd: exec.Command(r.program, all...), ended: make(chan struct{}), changed: make(chan struct{})}
	l.cmd.Dir = r.dir
	l.cmd.Env = append(os.Environ(), "TMPDIR="+r.temp)
	l.cmd.Stdout = &l.out
	pipe, err := l.cmd.StderrPipe()
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.ended)
		l.read(pipe)
		_ = l.cmd.Wait() // its exit code says how
	}()
	t.Cleanup(func() {
		select {
		case <-l.ended:
		default:
			_ = l.cmd.Process.Kill()
			for host := range r.net.Hosts() {
				_, _ = r.net.Kill(host) // the servers hold its standard error
			}
			<-l.ended
		}
		if t.Failed() {
			t.Logf("the servers said:\n%s", l.said())
		}
	})
	return l
}

func (l *launched) read(pipe io.Reader) {
	in := bufio.NewReader(pipe)
	for {
		line, err := in.ReadString('\n')
		l.mu.Lock()
		if line != "" {
			l.lines = append(l.lines, strings.TrimRight(line, "\n"))
		}
		l.last = err != nil
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// said is what the servers have said, without the progress of epochs.
func (l *launched) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	for _, line := range l.lines {
		if !strings.HasPrefix(line, "{") {
			text.WriteString(line + "\n")
		}
	}
	return text.String()
}

// mark is where the next line will be.
func (l *launched) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

// await waits for a line from number from on that is wanted, and returns the number after
// it. It is false if there is none before the end.
func (l *launched) await(from int, patience time.Duration, wanted func(line string) bool) (int, bool) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		l.mu.Lock()
		for ; from < len(l.lines); from++ {
			if wanted(l.lines[from]) {
				l.mu.Unlock()
				return from + 1, true
			}
		}
		ended, changed := l.last, l.changed
		l.mu.Unlock()
		if ended {
			return from, false
		}
		select {
		case <-changed:
		case <-late.C:
			l.t.Fatalf("nothing came for %v", patience)
		}
	}
}

// epochs waits for so many epochs from line number from on.
func (l *launched) epochs(from, n int, patience time.Duration) (int, bool) {
	return l.await(from, patience, func(line string) bool {
		if strings.HasPrefix(line, `{"epoch":`) {
			n--
		}
		return n <= 0
	})
}

// mustEpochs is epochs of a run that may not have ended.
func (l *launched) mustEpochs(from, n int) int {
	l.t.Helper()
	next, ok := l.epochs(from, n, time.Minute)
	if !ok {
		l.t.Fatalf("it ended before %d more epochs:\n%s", n, l.said())
	}
	return next
}

// over waits for the launcher's end, for so long.
func (l *launched) over(d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-l.ended:
		return true
	case <-late.C:
		return false
	}
}

// wait is the launcher's exit code and what it has printed.
func (l *launched) wait(patience time.Duration) (code int, out string) {
	l.t.Helper()
	if !l.over(patience) {
		l.t.Errorf("it did not end within %v", patience)
		_ = l.cmd.Process.Kill()
		<-l.ended
	}
	return l.cmd.ProcessState.ExitCode(), l.out.String()
}

// done is the summary of a run that ends well.
func (l *launched) done(patience time.Duration) summary {
	l.t.Helper()
	code, out := l.wait(patience)
	if code != 0 {
		l.t.Fatalf("exit code %d", code)
	}
	return parse(l.t, out)
}

// server is how host number i is called.
func (r *rig) server(i int) string {
	role, rank := "graph", i
	if i >= r.graphs {
		role, rank = "parameter", i-r.graphs
	}
	return fmt.Sprintf("%s server %d at %s:%d", role, rank, r.net.Hosts()[i].Addr, port)
}
