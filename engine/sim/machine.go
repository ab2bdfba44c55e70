package sim

import (
	"cmp"
	"slices"
)

// job is work for one core.
type job struct {
	took  instant
	turn  int    // lower ones come first, among those that are not urgent
	start func() // nil: nobody wants to know
	done  func()
}

// machine is a computer: cores, and a link to the others.
type machine struct {
	q     *queue
	cores int
	idle  int
	// What waits for a core: urgent jobs are messages, which come before tasks.
	urgent, ready []job
	bored         func() // is called when cores have nothing to do; nil: they just wait
	// out and in are the moments at which the link is free to send and to receive.
	out, in instant
	use     Use
}

// do queues a job.
func (m *machine) do(urgent bool, j job) {
	if urgent {
		m.urgent = append(m.urgent, j)
	} else {
		n, _ := slices.BinarySearchFunc(m.ready, j.turn+1, func(have job, turn int) int { return cmp.Compare(have.turn, turn) })
		m.ready = slices.Insert(m.ready, n, j)
	}
	m.pump()
}

func (m *machine) pump() {
	for m.idle > 0 {
		from := &m.urgent
		if len(*from) == 0 {
			from = &m.ready
		}
		if len(*from) == 0 {
			if m.bored != nil {
				m.bored()
			}
			return
		}
		j := (*from)[0]
		*from = (*from)[1:]
		m.idle--
		if j.start != nil {
			j.start()
		}
		m.q.at(m.q.now+j.took, func() {
			m.idle++
			m.use.busy += j.took
			j.done()
			m.pump()
		})
	}
}

// network moves messages between machines.
type network struct {
	q   *queue
	cfg *Network
}

// pack is how long a core is busy with a message at either end.
func (n *network) pack(bytes int64) instant {
	if n.cfg.Pack == 0 {
		return 0
	}
	return instantOf(float64(bytes) / n.cfg.Pack)
}

// send brings a message from one machine to another, or from one process of a machine to
// another, which costs nothing, and then calls arrived.
func (n *network) send(from, to *machine, bytes int64, arrived func()) {
	if from == to {
		n.q.at(n.q.now, arrived)
		return
	}
	n.busy(from, bytes, func() {
		n.move(from, to, bytes, func() { n.busy(to, bytes, arrived) })
	})
}

// busy makes a core of m pack or unpack a message.
func (n *network) busy(m *machine, bytes int64, then func()) {
	took := n.pack(bytes)
	if took == 0 {
		then()
		return
	}
	m.use.packing += took
	m.do(true, job{took: took, done: then})
}

// move lets a message through both links: its first byte arrives a latency after it was
// sent, and it is received no faster than it is sent.
func (n *network) move(from, to *machine, bytes int64, arrived func()) {
	bytes += n.cfg.Overhead
	took := instantOf(float64(bytes) / n.cfg.Bandwidth)
	begin := max(n.q.now, from.out)
	from.out = begin + took
	from.use.Sent += bytes
	from.use.Messages++
	from.use.sending += took
	n.q.at(begin+instantOf(n.cfg.Latency), func() {
		end := max(n.q.now, to.in) + took
		to.in = end
		n.q.at(end, func() {
			to.use.Received += bytes
			to.use.receiving += took
			arrived()
		})
	})
}

// down lets bytes out of a server to one of its remote workers, up back again.
func (n *network) down(m *machine, bytes int64, then func()) {
	took := instantOf(float64(bytes) / n.cfg.Bandwidth)
	m.use.RemoteSent += bytes
	m.out = max(n.q.now, m.out) + took
	n.q.at(m.out-took+max(took, n.lane(bytes))+instantOf(n.cfg.Latency), then)
}

func (n *network) up(m *machine, bytes int64, then func()) {
	took := instantOf(float64(bytes) / n.cfg.Bandwidth)
	m.use.RemoteReceived += bytes
	n.q.at(n.q.now+instantOf(n.cfg.Latency), func() {
		m.in = max(n.q.now, m.in) + took
		n.q.at(max(m.in, n.q.now+n.lane(bytes)), then)
	})
}

func (n *network) lane(bytes int64) instant {
	if n.cfg.Lane == 0 {
		return 0
	}
	return instantOf(float64(bytes) / n.cfg.Lane)
}
