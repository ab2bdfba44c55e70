package local

import "time"

// Clock is where a service takes its time from.
type Clock interface {
	// Now is the present. Workers compare the deadlines made from it with their own
	// clock, so a clock of a test should start at the real time.
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed, unless the
	// timer is stopped before.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of AfterFunc.
type Timer interface {
	// Stop reports whether it kept the call from happening.
	Stop() bool
}

type realClock struct{}

func (realClock) Now() time.Time                            { return time.Now() }
func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// alarm is a channel that closes when its timer fires.
type alarm struct {
	C     chan struct{}
	timer Timer
}

func newAlarm(c Clock, d time.Duration) *alarm {
	a := &alarm{C: make(chan struct{})}
	a.timer = c.AfterFunc(d, func() { close(a.C) })
	return a
}

func (a *alarm) stop() { a.timer.Stop() }

// pause waits for d on the clock, or until one of the channels closes; it says
// whether d has passed.
func pause(c Clock, d time.Duration, until ...<-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	a := newAlarm(c, d)
	defer a.stop()
	var other [2]<-chan struct{}
	copy(other[:], until)
	select {
	case <-a.C:
		return true
	case <-other[0]:
	case <-other[1]:
	}
	return false
}
