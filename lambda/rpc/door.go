package rpc

import (
	"net"
	"sync"
	"time"
)

// greeting bounds how long a connection may take to become one of gRPC's. A worker that
// hangs in it is one of those that will not come.
const greeting = 30 * time.Second

// door is a listener that can cut all connections that it has let in. A gRPC server that
// stops waits for those whose handshake is under way, so that a worker that is frozen in
// it, or somebody who connects and says nothing, would hold up the end of a run.
type door struct {
	net.Listener
	mu struct {
		sync.Mutex
		shut   bool
		inside map[*visitor]bool
	}
}

func newDoor(lis net.Listener) *door {
	d := &door{Listener: lis}
	d.mu.inside = map[*visitor]bool{}
	return d
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{Conn: c, door: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.shut {
		c.Close() // whoever reads from it learns the reason
	} else {
		d.mu.inside[v] = true
	}
	return v, nil
}

// cut ends all connections, those that are still to be accepted too.
func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.shut = true
	for v := range d.mu.inside {
		v.Conn.Close() // an error says that it has ended already
	}
	clear(d.mu.inside)
}

// visitor is a connection that its door knows until it is closed.
type visitor struct {
	net.Conn
	door *door
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	v.door.mu.Lock()
	delete(v.door.mu.inside, v)
	v.door.mu.Unlock()
	return v.Conn.Close()
}
