package local

import "time"

// outcome is how a call ended for its caller.
type outcome struct {
	reply reply
	api   *apiError // the call did not run to an end
	log   string    // the last lines of its log
}

// failure is why there is no environment.
type failure struct {
	api     *apiError
	kind    string // of the function error
	payload []byte
}

// perform runs a call to its end: an environment, the run, the bill.
func (s *Service) perform(c *call) outcome {
	e, refused := s.admit(c.fn)
	if refused != nil {
		s.rejected(c.fn.name, c.id, refused)
		return outcome{api: refused}
	}
	if e == nil {
		var f *failure
		if e, f = s.newEnvironment(c); f != nil {
			return s.notStarted(c, e, f)
		}
	}
	out, healthy, why := e.run(c)
	s.release(c.fn, e, healthy, why)
	return out
}

// notStarted ends a call whose environment did not come up. The time it took is
// billed, as INIT is.
func (s *Service) notStarted(c *call, e *environment, f *failure) outcome {
	out := outcome{api: f.api, reply: reply{payload: f.payload, bytes: int64(len(f.payload)), errorType: f.kind}}
	if e != nil {
		e.proc.kill()
		<-e.proc.gone
		if f.api == nil {
			e.finish(c, &out, 0)
		}
	}
	s.release(c.fn, e, false, "did not start: "+f.kind)
	return out
}

// ending is what ended a call's run.
type ending int

const (
	endFree    ending = iota // the worker asked for the next call
	endExit                  // its process ended
	endTimeout               // its time was up
	endClosing               // the service closes
)

// run hands the call to the worker and waits until it has replied and asks for
// the next one, as Lambda does; only then is the environment healthy.
func (e *environment) run(c *call) (out outcome, healthy bool, why string) {
	clock := e.s.opt.Clock
	e.proc.logs.reset()
	e.proc.logs.add(startLine(c))
	began := clock.Now()
	c.deadline = began.Add(e.fn.Timeout)
	timeout := newAlarm(clock, e.fn.Timeout)
	defer timeout.stop()
	e.setCurrent(c)
	defer e.setCurrent(nil)
	e.thaw()

	end := e.await(c, timeout.C)
	e.peakMB = max(e.peakMB, e.limits.peakMB(e.proc.pid))
	if end != endFree {
		e.proc.kill()
		<-e.proc.gone
		_ = e.api.Close() // a reply that is still being read breaks off
	}
	took := clock.Now().Sub(began)
	r, ok := c.settle()
	out.reply = r
	if !ok {
		out.reply, out.api = e.noReply(c, end)
	}
	if end == endFree {
		e.proc.logs.sync()
		healthy = ok
	}
	e.finish(c, &out, took)
	return out, healthy, e.endText(end)
}

// await drives one call until something ends it.
func (e *environment) await(c *call, timeout <-chan struct{}) ending {
	select {
	case <-e.parked: // a second request for a call, after a broken connection
	default:
	}
	work, early := e.work, c.early
	var strike <-chan struct{}
	for {
		select {
		case work <- c:
			work = nil
			e.emit(Event{Kind: Invoked, RequestID: c.id, PID: e.proc.pid, Cold: e.cold, Bytes: int64(len(c.payload))})
			if c.faults.crash || c.faults.hang {
				a := newAlarm(e.s.opt.Clock, c.faults.strike)
				defer a.stop()
				strike = a.C
			}
		case <-e.parked:
			if work == nil {
				return endFree
			}
		case <-strike:
			strike, early = nil, nil
			e.strike(c)
		case <-early:
			strike, early = nil, nil
			e.strike(c)
		case <-e.proc.gone:
			return endExit
		case <-timeout:
			return endTimeout
		case <-e.s.stopping:
			return endClosing
		}
	}
}

// strike does to the worker what chaos has drawn.
func (e *environment) strike(c *call) {
	if c.faults.crash {
		e.emit(Event{Kind: Fault, RequestID: c.id, PID: e.proc.pid, Text: "crash"})
		e.proc.kill()
		return
	}
	e.emit(Event{Kind: Fault, RequestID: c.id, PID: e.proc.pid, Text: "hang"})
	freezeGroup(e.proc.pid)
}

// noReply is the function error of a call that nobody replied to.
func (e *environment) noReply(c *call, end ending) (reply, *apiError) {
	var r reply
	switch end {
	case endClosing:
		return r, errClosing
	case endTimeout:
		r.errorType = "Sandbox.Timedout"
		r.payload = functionError(r.errorType, "RequestId: %s Error: Task timed out after %.2f seconds", c.id, e.fn.Timeout.Seconds())
	case endExit:
		r.errorType = "Runtime.ExitError"
		r.payload = functionError(r.errorType, "RequestId: %s Error: Runtime exited with error: %s", c.id, e.proc.how)
	case endFree:
		r.errorType = "Runtime.NoReply"
		r.payload = functionError(r.errorType, "RequestId: %s Error: the worker asked for the next call without replying to this one", c.id)
	}
	r.bytes = int64(len(r.payload))
	return r, nil
}

func (e *environment) endText(end ending) string {
	switch end {
	case endExit:
		return "process ended: " + e.proc.how
	case endTimeout:
		return "call timed out"
	case endClosing:
		return "the service closes"
	}
	return "worker did not reply"
}

func (e *environment) setCurrent(c *call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.current = c
}

// finish writes the report, the bill and the event of a call that ran for took.
func (e *environment) finish(c *call, out *outcome, took time.Duration) {
	var init time.Duration
	if e.cold {
		init = e.init
	}
	r := report{call: c, took: took, init: init, memoryMB: e.fn.MemoryMB, peakMB: e.peakMB, errorType: out.reply.errorType}
	e.proc.logs.add(r.lines())
	out.log = e.proc.logs.last()

	bill := Bill{
		Requests: 1, BilledMS: r.billedMS(), InitMS: milliseconds(init), MBMS: r.billedMS() * int64(e.fn.MemoryMB),
		BytesUp: int64(len(c.payload)), BytesDown: out.reply.bytes, BytesStreamed: out.reply.streamed,
	}
	if out.reply.errorType != "" {
		bill.Failed = 1
	}
	e.s.book.add(e.fn.name, bill)
	e.emit(Event{
		Kind: Finished, RequestID: c.id, PID: e.proc.pid, Cold: e.cold, Init: init, Duration: took,
		Billed: time.Duration(bill.BilledMS) * time.Millisecond, Bytes: out.reply.bytes, ErrorType: out.reply.errorType,
	})
	e.cold = false
}
