package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"dorylus/cluster/rpc"
)

// patience bounds what a test waits for: long, for machines with much else to do.
const patience = 2 * time.Minute

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parcel is an Item: number n of its sender, in chunks of size bytes, all of value n.
type parcel struct {
	n, chunks, size int
}

func (p *parcel) Size() int64    { return int64(p.chunks*p.size) + 64 }
func (p *parcel) Chunks() int    { return p.chunks }
func (p *parcel) String() string { return fmt.Sprintf("parcel %d", p.n) }

func (p *parcel) Encode(yield func(*rpc.Message) bool) {
	for range p.chunks {
		body := make([]byte, p.size)
		for i := range body {
			body[i] = byte(p.n)
		}
		head := binary.LittleEndian.AppendUint32(nil, uint32(p.n))
		head = binary.LittleEndian.AppendUint32(head, uint32(p.chunks*p.size))
		if !yield(&rpc.Message{Head: head, Parts: [][]byte{body}}) {
			return
		}
	}
}

// parcels is the Decoder.
type parcels struct{}

func (parcels) Size(_ int, m *rpc.Message) (int64, error) {
	if len(m.Head) != 8 {
		return 0, errors.New("no parcel")
	}
	return int64(binary.LittleEndian.Uint32(m.Head[4:])) + 64, nil
}

func (parcels) Add(_ int, v *parcel, i, n int, m *rpc.Message) (*parcel, error) {
	if len(m.Head) != 8 || len(m.Parts) != 1 {
		return nil, errors.New("no parcel")
	}
	num := int(binary.LittleEndian.Uint32(m.Head))
	if v == nil {
		v = &parcel{n: num, size: len(m.Parts[0])}
	}
	if v.n != num || i != v.chunks || i >= n {
		return nil, fmt.Errorf("chunk %d of parcel %d to parcel %d with %d", i, num, v.n, v.chunks)
	}
	for _, b := range m.Parts[0] {
		if b != byte(num) {
			return nil, fmt.Errorf("parcel %d holds %d", num, b)
		}
	}
	v.chunks++
	return v, nil
}

// rig is meshes of all ranks on loopback.
type rig struct {
	t       *testing.T
	meshes  []*Mesh[*parcel]
	servers []*rpc.Server
	conns   []*grpc.ClientConn
	closed  []bool
}

// newRig makes and starts n meshes; tune changes their settings.
func newRig(t *testing.T, n int, tune func(rank int, c *Config[*parcel])) *rig {
	t.Helper()
	r := &rig{t: t, closed: make([]bool, n)}
	for range n {
		s, err := rpc.Listen("127.0.0.1:0", rpc.Plaintext(), rpc.Options{})
		check(t, err)
		r.servers = append(r.servers, s)
	}
	for rank := range n {
		c := Config[*parcel]{Service: "test.Parcels", Decoder: parcels{}, Base: Base{Rank: rank, Size: n, Peers: make(map[int]Peer), Job: Job{ID: "run"},
			ReadyTimeout: patience, PeerTimeout: patience, StallTimeout: patience, LeaveTimeout: 2 * time.Second}}
		for to := range n {
			if to == rank {
				continue
			}
			who := rpc.Who{Role: rpc.Graph, Rank: to}
			cc, err := rpc.Dial(r.servers[to].Addr(), rpc.Plaintext(), who, rpc.Options{})
			check(t, err)
			r.conns = append(r.conns, cc)
			c.Peers[to] = Peer{Who: who, Addr: r.servers[to].Addr(), Conn: cc}
		}
		if tune != nil {
			tune(rank, &c)
		}
		m, err := New(c)
		check(t, err)
		r.servers[rank].Handle(m.Service())
		r.servers[rank].Serve()
		m.Start()
		r.meshes = append(r.meshes, m)
	}
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for rank := range n {
			wg.Go(func() { r.kill(rank) })
		}
		wg.Wait()
		for _, cc := range r.conns {
			cc.Close()
		}
	})
	return r
}

// kill ends a server as a crash does: nobody hears of it.
func (r *rig) kill(rank int) {
	if r.closed[rank] {
		return
	}
	r.closed[rank] = true
	m := r.meshes[rank]
	m.mu.Lock()
	m.mu.closed = true
	m.mu.Unlock()
	m.cancel()
	if err := r.servers[rank].Close(); err != nil {
		r.t.Error(err)
	}
	m.running.Wait()
	m.serving.Wait()
	for _, i := range m.ins {
		i.forget()
	}
}

// leave ends all servers in good order, at the same time.
func (r *rig) leave() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for rank, m := range r.meshes {
		if r.closed[rank] {
			continue
		}
		wg.Go(func() {
			if err := m.Leave(ctx, ""); err != nil {
				r.t.Errorf("rank %d leaves: %v", rank, err)
			}
		})
	}
	wg.Wait()
}

func (r *rig) ready() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, m := range r.meshes {
		check(r.t, m.Ready(ctx))
	}
}

// trouble is Faults by seed, and counts what it has done.
type trouble struct {
	mu                    sync.Mutex
	rng                   *rand.Rand
	cut, twice, delay     float64
	cuts, twices, shuffle int
}

func (f *trouble) Message(int, int) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var x Fault
	if f.rng.Float64() < f.delay {
		x.Delay = time.Duration(f.rng.IntN(300)) * time.Microsecond
	}
	if f.rng.Float64() < f.cut {
		x.Cut = true
		f.cuts++
	}
	if f.rng.Float64() < f.twice {
		x.Twice = true
		f.twices++
	}
	return x
}

func (f *trouble) Order(_, _, n int) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 1 {
		f.shuffle++
	}
	return f.rng.Perm(n)
}
