package wire

import "time"

// Late is conn with latency: what the other side sends is received so much later,
// however much there is of it. 0 is conn itself.
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
	on      chan arrival
	latency time.Duration
}

type arrival struct {
	m   *Message
	err error
	at  time.Time
}

// carry takes messages as they come, until the stream ends.
func (l *late) carry() {
	defer close(l.on)
	for {
		m, err := l.Conn.Recv()
		l.on <- arrival{m, err, time.Now().Add(l.latency)}
		if err != nil {
			return
		}
	}
}

// Recv implements Conn.
func (l *late) Recv() (*Message, error) {
	a := <-l.on
	timer := time.NewTimer(time.Until(a.at))
	defer timer.Stop()
	<-timer.C
	return a.m, a.err
}
