package wire

import (
	"fmt"
	"time"
)

// Late is conn with latency: what the other side sends is received so much later,
// however much there is of it. 0 is conn itself. Where nobody receives, the stream
// counts as broken at some point; no goroutine waits for a receiver.
func Late(conn Conn, latency time.Duration) Conn {
	if latency == 0 {
		return conn
	}
	l := &late{Conn: conn, on: make(chan arrival, onTheWay), latency: latency}
	go l.carry()
	return l
}

// onTheWay bounds the messages that have been sent and are not received yet.
const onTheWay = 4096

type late struct {
	Conn
	on      chan arrival // closed behind the last message
	latency time.Duration
	// end is why the stream has ended, and when the receiver learns it; set before on is
	// closed.
	end struct {
		err error
		at  time.Time
	}
}

type arrival struct {
	m  *Message
	at time.Time
}

// carry takes messages as they come, until the stream ends.
func (l *late) carry() {
	defer close(l.on)
	for {
		m, err := l.Conn.Recv()
		at := time.Now().Add(l.latency)
		if err == nil {
			select {
			case l.on <- arrival{m, at}:
				continue
			default:
				err = fmt.Errorf("receive with latency: %d messages wait and nobody takes them", onTheWay)
			}
		}
		l.end.err, l.end.at = err, at
		return
	}
}

// Recv implements Conn.
func (l *late) Recv() (*Message, error) {
	a, ok := <-l.on
	if !ok {
		wait(l.end.at)
		return nil, l.end.err
	}
	wait(a.at)
	return a.m, nil
}

func wait(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	<-timer.C
}
