package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is a worker's process group.
type process struct {
	cmd  *exec.Cmd
	pid  int
	logs *logs
	// gone closes once the process has ended, its group was killed and its output
	// was read. how says how it ended; only read after gone.
	gone chan struct{}
	how  string
}

// start runs cmd in a group of its own and collects what it prints. The spawner
// calls it, so that the thread whose end would kill the child stays.
func (s *Service) startProcess(cmd *exec.Cmd) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the output: %w", err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	ownGroup(cmd)
	if err := s.spawner.do(cmd.Start); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", cmd.Path, err), r.Close(), w.Close())
	}
	p := &process{cmd: cmd, pid: cmd.Process.Pid, logs: newLogs(r, w, s.opt.Log, &s.logMu), gone: make(chan struct{})}
	s.running.Go(p.logs.read)
	s.running.Go(p.wait)
	return p, nil
}

func (p *process) wait() {
	defer close(p.gone)
	err := p.cmd.Wait()
	killGroup(p.pid) // whatever it left behind
	p.logs.close()
	switch state := p.cmd.ProcessState; {
	case err == nil:
		p.how = "exit status 0"
	case state != nil:
		p.how = state.String()
	default:
		p.how = err.Error()
	}
}

// kill ends the whole group; gone closes soon after.
func (p *process) kill() {
	select {
	case <-p.gone: // the number may be another's by now
	default:
		killGroup(p.pid)
	}
}

// spawner starts processes on one thread. On Linux a child asks to be killed when
// the thread that started it ends, which may be long before the program does
// unless the thread is held.
type spawner struct {
	work chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread()
		// Unlocked before its end, the thread goes on for other goroutines.
		defer runtime.UnlockOSThread()
		for f := range s.work {
			f()
		}
	}()
	return s
}

func (s *spawner) do(f func() error) error {
	result := make(chan error, 1)
	s.work <- func() { result <- f() }
	return <-result
}

// stop ends the thread's work; no do may follow.
func (s *spawner) stop() {
	close(s.work)
	<-s.done
}
