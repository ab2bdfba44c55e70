package launch

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// drain is how long output may be held open by what a dead server has left behind.
const drain = 2 * time.Second

// process is a running server.
type process struct {
	server *Server
	cmd    *exec.Cmd
	words  *wire          // its standard error
	wired  io.WriteCloser // its standard input, where signals go this way
	ready  chan error     // one value: whether it could be started
}

// begin starts a server and reports its end to ended, exactly once, if and only if it
// could be started. The goroutine that starts it lives as long as it does, on a thread of
// its own: the kernel takes the end of that thread for that of the launcher.
func begin(s *Server, out, err io.Writer, ended chan<- *Exit) (*process, error) {
	p := &process{server: s, ready: make(chan error, 1)}
	p.words = newWire(s, err)
	p.cmd = exec.Command(s.Path, s.Args...)
	p.cmd.Env, p.cmd.Dir, p.cmd.ExtraFiles = s.Env, s.Dir, s.Files
	p.cmd.Stdout, p.cmd.Stderr = out, p.words
	p.cmd.WaitDelay = drain
	p.cmd.SysProcAttr = ownGroup()
	if s.Wired {
		in, err := p.cmd.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", s.Name(), err)
		}
		p.wired = in
	}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := p.cmd.Start()
		p.ready <- err
		if err != nil {
			return
		}
		ended <- p.wait()
	}()
	if err := <-p.ready; err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name(), err)
	}
	return p, nil
}

// wait is the end of the process, after which nothing of its group is left.
func (p *process) wait() *Exit {
	awaitEnd(p.cmd.Process.Pid) // still there as a zombie: its group cannot be another's
	killGroup(p.cmd.Process.Pid)
	err := p.cmd.Wait()
	p.words.flush()
	e := &Exit{Server: p.server, Words: p.words.last()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		e.err = err
		return e
	}
	e.Code = p.cmd.ProcessState.ExitCode()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	return e
}

// send passes a signal on. A process that has just ended does not mind.
func (p *process) send(sig syscall.Signal) {
	if p.wired == nil || sig == syscall.SIGKILL {
		_ = p.cmd.Process.Signal(sig)
		return
	}
	word := "TERM\n"
	if sig == syscall.SIGINT {
		word = "INT\n"
	}
	_, _ = io.WriteString(p.wired, word)
}

// kill ends the process and its group. A server on another machine is told to end at once,
// and ssh, which ends with it, has a little time: else the server might still have its
// port when it is started again.
func (p *process) kill() {
	if p.wired == nil {
		_ = p.cmd.Process.Kill()
		return
	}
	_, _ = io.WriteString(p.wired, "KILL\n")
	_ = p.wired.Close()
	time.AfterFunc(drain, func() { _ = p.cmd.Process.Kill() }) // most times it has ended
}
