package fleet

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"dorylus/lambda/wire"
)

// faults are how often what goes wrong with a message.
type faults struct {
	drop, delay, repeat, crash, hang float64 // of messages from the worker
	lose, cut                        float64 // of messages to the worker: lost, and the stream with them
	longest                          time.Duration
	launch                           float64 // of launches: it fails
	absent                           float64 // of launches: the worker never comes
}

// draw makes faults up: about half of the kinds are left out, and few schedules have
// many of all.
func draw(r *rand.Rand) faults {
	most := r.Float64() * r.Float64()
	p := func(share float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return share * most
	}
	return faults{
		drop: p(0.1), delay: p(0.4), repeat: p(0.4), crash: p(0.1), hang: p(0.04), lose: p(0.06), cut: p(0.06),
		longest: time.Duration(r.IntN(5000)+1) * time.Millisecond, launch: p(0.9), absent: p(0.5),
	}
}

func (f faults) String() string {
	return fmt.Sprintf("drop %.2f, delay %.2f to %v, repeat %.2f, crash %.2f, hang %.2f, lose %.2f, cut %.2f, launch %.2f, absent %.2f",
		f.drop, f.delay, f.longest, f.repeat, f.crash, f.hang, f.lose, f.cut, f.launch, f.absent)
}

// shaky is the graph server's side of a stream on which things go wrong. Delayed
// messages arrive after later ones.
type shaky struct {
	*wire.PipeConn
	faults
	up, down *rand.Rand // of messages from and to the worker

	in   chan *wire.Message
	done chan struct{}
	once sync.Once
}

func newShaky(c *wire.PipeConn, f faults, seed uint64, worker int) *shaky {
	s := &shaky{
		PipeConn: c, faults: f, in: make(chan *wire.Message), done: make(chan struct{}),
		up: rand.New(rand.NewPCG(seed, uint64(2*worker))), down: rand.New(rand.NewPCG(seed, uint64(2*worker+1))),
	}
	go s.listen()
	return s
}

func (s *shaky) listen() {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer s.Close()
	hung := false
	for {
		m, err := s.PipeConn.Recv()
		if err != nil {
			return
		}
		if m.Hello != nil {
			s.hand(m)
			continue
		}
		hung = hung || s.up.Float64() < s.hang
		crash, drop, delay, repeat := s.up.Float64() < s.crash, s.up.Float64() < s.drop, s.up.Float64() < s.delay, s.up.Float64() < s.repeat
		after := time.Duration(s.up.Int64N(int64(s.longest)))
		switch {
		case hung:
			continue
		case crash:
			return
		case drop:
			continue
		case delay:
			wg.Go(func() {
				if wait(after, s.done) {
					s.hand(m)
				}
			})
		default:
			s.hand(m)
		}
		if repeat {
			s.hand(m)
		}
	}
}

func (s *shaky) hand(m *wire.Message) {
	select {
	case s.in <- m:
	case <-s.done:
	}
}

func (s *shaky) Recv() (*wire.Message, error) {
	select {
	case m := <-s.in:
		return m, nil
	case <-s.done:
		return nil, io.EOF
	}
}

// Close ends the stream, and what is under way on it.
func (s *shaky) Close() {
	s.once.Do(func() { close(s.done) })
	s.PipeConn.Close()
}

func (s *shaky) Send(m *wire.Message) error {
	lose, cut := s.down.Float64() < s.lose, s.down.Float64() < s.cut
	switch {
	case m.Job != nil || m.Stop != nil:
	case lose:
		return nil
	case cut:
		s.Close()
		return io.ErrClosedPipe
	}
	return s.PipeConn.Send(m)
}
