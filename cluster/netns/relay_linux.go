package netns

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// relay carries packets between the TUN devices of hosts.
type relay struct {
	start   time.Time
	devices []*os.File // by host
	pumps   []*pump
	byAddr  map[uint32]int
	stop    chan struct{}
	working sync.WaitGroup

	mu    sync.Mutex
	lines [][]*line // from, to; nil: to itself
}

func openRelay(hosts []Host, s Shape, seed uint64) (r *relay, err error) {
	r = &relay{start: time.Now(), byAddr: map[uint32]int{}, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	for i, h := range hosts {
		device, err := openTUN(h, i)
		if err != nil {
			return r, err
		}
		r.devices = append(r.devices, device)
		r.pumps = append(r.pumps, &pump{to: device, wake: make(chan struct{}, 1)})
		r.byAddr[binary.BigEndian.Uint32(net.ParseIP(h.Addr).To4())] = i
		r.lines = append(r.lines, make([]*line, len(hosts)))
		for j := range hosts {
			if j != i {
				r.lines[i][j] = newLine(s, seed, uint64(i*most+j))
			}
		}
	}
	for i := range hosts {
		r.working.Go(func() { r.read(i) })
		r.working.Go(func() { r.pumps[i].run(r.start, r.stop) })
	}
	return r, nil
}

// openTUN gives a host a TUN device. It is gone when the file is closed.
func openTUN(h Host, number int) (*os.File, error) {
	name := fmt.Sprintf("dt%d-%d", os.Getpid(), number)
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w; the kernel needs TUN or netem", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the device %s: %w", name, err), unix.Close(fd))
	}
	file := os.NewFile(uintptr(fd), "/dev/net/tun")
	err = commands("ip",
		fmt.Sprintf("link set %s netns %s", name, h.Namespace),
		fmt.Sprintf("-n %s addr add %s/24 dev %s", h.Namespace, h.Addr, name),
		fmt.Sprintf("-n %s link set %s up mtu %d txqueuelen 5000", h.Namespace, name, mtu))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// read takes what a host sends, until its device is closed.
func (r *relay) read(from int) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.devices[from].Read(buf)
		if err != nil {
			return
		}
		if n < 20 || buf[0]>>4 != 4 {
			continue // IPv6 looks for neighbours
		}
		to, ok := r.byAddr[binary.BigEndian.Uint32(buf[16:])]
		if !ok || to == from {
			continue
		}
		r.mu.Lock()
		due, ok := r.lines[from][to].admit(time.Since(r.start), n)
		r.mu.Unlock()
		if ok {
			r.pumps[to].put(due, append([]byte(nil), buf[:n]...))
		}
	}
}

func (r *relay) cut(a, b int, yes bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[a][b].cut, r.lines[b][a].cut = yes, yes
	return nil
}

// counts is what has gone from a host to another one.
func (r *relay) counts(from, to int) Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines[from][to].count
}

func (r *relay) close() error {
	close(r.stop)
	var errs []error
	for _, d := range r.devices {
		errs = append(errs, d.Close())
	}
	r.working.Wait()
	return errors.Join(errs...)
}

// pump gives a host its packets when they are due.
type pump struct {
	to   *os.File
	wake chan struct{} // something is due earlier than before

	mu  sync.Mutex
	due packets
	seq uint64
}

type packet struct {
	due  time.Duration
	seq  uint64 // packets due at the same time keep their order
	data []byte
}

func (p *pump) put(due time.Duration, data []byte) {
	p.mu.Lock()
	p.seq++
	heap.Push(&p.due, packet{due, p.seq, data})
	first := p.due[0].seq == p.seq
	p.mu.Unlock()
	if first {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// next is the first packet that is due, or how long it takes until one is.
func (p *pump) next(now time.Duration) (data []byte, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.due) == 0:
		return nil, time.Hour
	case p.due[0].due > now:
		return nil, p.due[0].due - now
	}
	return heap.Pop(&p.due).(packet).data, 0
}

func (p *pump) run(start time.Time, stop <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		data, wait := p.next(time.Since(start))
		if data != nil {
			_, _ = p.to.Write(data) // a host that is being removed takes nothing
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-p.wake:
		case <-stop:
			return
		}
	}
}

// packets is a heap of them, the one that is due first on top.
type packets []packet

// Len implements heap.Interface.
func (p packets) Len() int { return len(p) }

// Less implements heap.Interface.
func (p packets) Less(i, j int) bool {
	return p[i].due < p[j].due || p[i].due == p[j].due && p[i].seq < p[j].seq
}

// Swap implements heap.Interface.
func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push implements heap.Interface.
func (p *packets) Push(x any) { *p = append(*p, x.(packet)) }

// Pop implements heap.Interface.
func (p *packets) Pop() any {
	old := *p
	x := old[len(old)-1]
	old[len(old)-1] = packet{}
	*p = old[:len(old)-1]
	return x
}
