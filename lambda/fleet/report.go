package fleet

import (
	"fmt"
	"sync"

	"dorylus/engine"
)

// maxReports bounds the events that wait to be taken. Those of the bill come on top:
// there are no more of them than invocations.
const maxReports = 4096

// reports are events that wait for the goroutine that may call the run's listener.
type reports struct {
	bell chan struct{} // has a value while list has one
	mu   sync.Mutex
	list []engine.Event
	free int // events that list has room for
	lost int
}

func newReports() *reports {
	return &reports{bell: make(chan struct{}, 1), free: maxReports}
}

func (r *reports) add(e engine.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.(type) {
	case engine.LambdaUsed:
	case engine.LambdaHeld:
		if n := len(r.list); n > 0 {
			if _, same := r.list[n-1].(engine.LambdaHeld); same {
				r.list[n-1] = e
				return
			}
		}
	default:
		if r.free == 0 {
			r.lost++
			return
		}
		r.free--
	}
	r.list = append(r.list, e)
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

func (r *reports) take() []engine.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.bell:
	default:
	}
	out := r.list
	if r.lost > 0 {
		out = append(out, engine.Warned{Message: fmt.Sprintf("%d events of the Lambda workers are not told: too many waited", r.lost)})
	}
	r.list, r.free, r.lost = nil, maxReports, 0
	return out
}

// Reports implements engine.Reporter.
func (f *Fleet) Reports() <-chan struct{} { return f.reports.bell }

// Take implements engine.Reporter.
func (f *Fleet) Take() []engine.Event { return f.reports.take() }

// Tell has an event of somebody else, such as a launcher's LambdaUsed, told with the
// fleet's own. It may be called by any goroutine, at any time before the last Take.
func (f *Fleet) Tell(e engine.Event) { f.reports.add(e) }
