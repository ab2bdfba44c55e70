package local

import (
	"fmt"
	"time"
)

// enqueue takes an asynchronous call on. It runs in a goroutine of its own, whose
// number asyncQueue bounds.
func (s *Service) enqueue(in *invocation) *apiError {
	if s.queued.Add(1) > asyncQueue {
		s.queued.Add(-1)
		return errThrottled(overRate, time.Second)
	}
	runs := 1
	if in.call.faults.duplicate {
		runs = 2
		s.queued.Add(1)
		s.emit(Event{Kind: Fault, Function: in.fn.name, RequestID: in.call.id, Text: "duplicate"})
	}
	for run := range runs {
		q := in.call
		q.sink = buffered{}
		if run > 0 {
			q.faults = faults{}
		}
		s.running.Go(func() {
			defer s.queued.Add(-1)
			s.runAsync(q)
		})
	}
	return nil
}

// runAsync runs a call until it succeeds. A function error is tried again after
// one and then after two minutes; a refusal, with growing pauses, until the event
// is six hours old.
func (s *Service) runAsync(q request) {
	clock := s.opt.Clock
	born := clock.Now()
	failures, refusals := 0, 0
	drop := func(format string, args ...any) {
		s.emit(Event{Kind: Dropped, Function: q.fn.name, RequestID: q.id, Text: fmt.Sprintf(format, args...)})
	}
	for {
		out := s.perform(newCall(q))
		q.faults = faults{} // a repetition has better luck
		var wait time.Duration
		var why string
		switch {
		case out.api == errClosing:
			drop("%s", errClosing.text)
			return
		case out.api != nil:
			wait = min(5*time.Minute, time.Second<<min(refusals, 10))
			refusals++
			why = out.api.Error()
		case out.reply.errorType == "":
			return
		default:
			failures++
			wait = time.Duration(failures) * time.Minute
			why = out.reply.errorType
		}
		if failures > asyncRetries || clock.Now().Add(wait).Sub(born) > asyncMaxAge {
			drop("given up after %d failures and %d refusals: %s", failures, refusals, why)
			return
		}
		s.emit(Event{Kind: Retry, Function: q.fn.name, RequestID: q.id, Duration: wait, Text: why})
		if !pause(clock, wait, s.stopping) {
			drop("%s", errClosing.text)
			return
		}
	}
}
