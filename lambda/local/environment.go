package local

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// environment is a worker process with its Runtime API. One call at a time uses
// it; whoever took it from the pool owns it until it is given back.
type environment struct {
	s      *Service
	fn     *function
	id     string // 32 hex digits, as in the log stream's name
	proc   *process
	limits *limits
	tmp    string
	up     *pacer
	down   *pacer

	// init is how long the process took to ask for its first call; cold that no
	// call has used it yet.
	init time.Duration
	cold bool
	// peakMB is the most memory the worker was seen to use; 0: it ended before one
	// could look.
	peakMB int

	// parked gets a token when the worker asks for a call, work hands it one.
	parked chan struct{}
	work   chan *call

	api      *http.Server
	served   chan struct{} // the server's goroutine has ended
	handlers gate

	mu struct {
		sync.Mutex
		current   *call
		initError []byte // reported before the first call
	}

	// Owned by the pool.
	reap     Timer
	reapings int // how often it was idle, to tell an old timer from this one
}

// newEnvironment starts a worker and waits until it asks for its first call.
// What it used of the bill until an error is in init.
func (s *Service) newEnvironment(c *call) (*environment, *failure) {
	e := &environment{
		s: s, fn: c.fn, id: newHex(16), cold: true,
		parked: make(chan struct{}, 1), work: make(chan *call), served: make(chan struct{}),
		up:   &pacer{clock: s.opt.Clock, rate: s.opt.BandwidthBytesPerSec},
		down: &pacer{clock: s.opt.Clock, rate: s.opt.BandwidthBytesPerSec},
	}
	wait := s.opt.ColdStartDelay
	if c.faults.slowStart {
		wait += s.chaos.Load().Delay
		s.emit(Event{Kind: Fault, Function: e.fn.name, Environment: e.id, RequestID: c.id, Text: "slow start"})
	}
	if !pause(s.opt.Clock, wait, s.stopping) {
		return nil, &failure{api: errClosing}
	}
	if err := e.start(); err != nil {
		return nil, &failure{api: errService("start a worker of function %s: %v", e.fn.name, err)}
	}
	return e, e.awaitInit(c)
}

// start opens the Runtime API and the process.
func (e *environment) start() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the Runtime API: %w", err)
	}
	if e.tmp, err = os.MkdirTemp("", "dorylus-lambda-"); err != nil {
		listener.Close()
		return fmt.Errorf("make the worker's temporary folder: %w", err)
	}
	cmd := exec.Command(e.fn.Command[0], e.fn.Command[1:]...)
	cmd.Dir = filepath.Dir(cmd.Path)
	cmd.Env = e.variables(listener.Addr().String())
	e.limits = e.s.confine.prepare(cmd, e.id, e.fn.MemoryMB)
	if e.proc, err = e.s.startProcess(cmd); err != nil {
		listener.Close()
		e.limits.close()
		os.RemoveAll(e.tmp)
		return err
	}
	e.api = &http.Server{Handler: e.runtimeAPI()}
	e.s.running.Go(func() {
		defer close(e.served)
		_ = e.api.Serve(listener) // ends by Close
	})
	e.s.book.add(e.fn.name, Bill{ColdStarts: 1})
	e.emit(Event{Kind: ColdStart, PID: e.proc.pid, Text: e.limits.text})
	return nil
}

// awaitInit waits for the worker's first request for a call.
func (e *environment) awaitInit(c *call) *failure {
	began := e.s.opt.Clock.Now()
	limit := newAlarm(e.s.opt.Clock, initTimeout)
	defer limit.stop()
	f := &failure{}
	select {
	case <-e.parked:
		e.init = e.s.opt.Clock.Now().Sub(began)
		e.limits.started(e.proc.pid)
		e.emit(Event{Kind: Ready, PID: e.proc.pid, Init: e.init})
		return nil
	case <-e.proc.gone:
		f.kind, f.payload = "Runtime.ExitError", functionError("Runtime.ExitError", "RequestId: %s Error: Runtime exited with error: %s", c.id, e.proc.how)
	case <-limit.C:
		f.kind, f.payload = "Sandbox.Timedout", functionError("Sandbox.Timedout", "RequestId: %s Error: the worker did not ask for a call within %v", c.id, initTimeout)
	case <-e.s.stopping:
		f.api = errClosing
	}
	e.init = e.s.opt.Clock.Now().Sub(began)
	e.mu.Lock()
	if own := e.mu.initError; own != nil {
		f.kind, f.payload = errorType(own, ""), own
	}
	e.mu.Unlock()
	return f
}

// variables is all of the worker's environment, as Lambda sets it.
func (e *environment) variables(api string) []string {
	o := e.s.opt
	task := filepath.Dir(e.fn.Command[0])
	env := []string{
		"AWS_LAMBDA_RUNTIME_API=" + api,
		"AWS_LAMBDA_FUNCTION_NAME=" + e.fn.name,
		"AWS_LAMBDA_FUNCTION_VERSION=" + version,
		fmt.Sprintf("AWS_LAMBDA_FUNCTION_MEMORY_SIZE=%d", e.fn.MemoryMB),
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + e.fn.name,
		"AWS_LAMBDA_LOG_STREAM_NAME=" + o.Clock.Now().UTC().Format("2006/01/02/[") + version + "]" + e.id,
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_REGION=" + o.Region,
		"AWS_DEFAULT_REGION=" + o.Region,
		"AWS_ACCESS_KEY_ID=local",
		"AWS_SECRET_ACCESS_KEY=local",
		"AWS_SESSION_TOKEN=local",
		"_HANDLER=bootstrap",
		"LAMBDA_TASK_ROOT=" + task,
		"LAMBDA_RUNTIME_DIR=" + task,
		"PATH=/usr/local/bin:/usr/bin:/bin:/opt/bin",
		"LANG=en_US.UTF-8",
		"TZ=:UTC",
		"TMPDIR=" + e.tmp,
	}
	for name, value := range e.fn.Env {
		env = append(env, name+"="+value)
	}
	return env
}

func (e *environment) freeze() {
	if canFreeze && !e.s.opt.NoFreeze {
		freezeGroup(e.proc.pid)
	}
}

func (e *environment) thaw() {
	if canFreeze && !e.s.opt.NoFreeze {
		thawGroup(e.proc.pid)
	}
}

// end kills the worker and closes everything of the environment.
func (e *environment) end(why string) {
	e.proc.kill()
	<-e.proc.gone
	_ = e.api.Close() // what is left are connections of the dead
	<-e.served
	e.handlers.shut()
	e.limits.close()
	if err := os.RemoveAll(e.tmp); err != nil {
		why = fmt.Sprintf("%s; %v", why, err)
	}
	e.emit(Event{Kind: Ended, PID: e.proc.pid, Text: why})
}

func (e *environment) emit(ev Event) {
	ev.Function, ev.Environment = e.fn.name, e.id
	e.s.emit(ev)
}
