package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"dorylus/cluster/rpc"
)

// An in is the receiving end of a link. Whoever serves its stream puts messages in;
// streams follow each other, and a newer one takes over from one that has not yet ended.
type in[T any] struct {
	from int
	peer Peer
	mesh *Mesh[T]
	wake chan struct{} // the stream's server looks whether it has something to acknowledge

	mu struct {
		sync.Mutex
		born   uint64        // of the sender; 0: never there
		gen    int           // of the stream that counts
		kicked chan struct{} // closed when a newer stream takes over
		window int64
		// next is the number of the first item that is not there, or has not followed
		// those before it. partial has what came of it and of later ones.
		next    uint64
		partial map[uint64]*partial[T]
		read    uint64 // items that have been taken
		held    int64  // bytes of items that are not taken
		bye     bool   // the sender has left in good order
		refused string // why it was not let in
		away    *time.Timer
		stats   InStats
	}
}

// InStats count what an incoming link has got.
type InStats struct {
	Items, Messages int64 // repeats not counted
	Repeats         int64 // messages that were there already
	Streams         int64
}

// partial is an item that is being put together.
type partial[T any] struct {
	v          T
	size       int64
	got, count int  // messages
	drop       bool // nobody receives any more: it is counted, and not kept
}

func (i *in[T]) poke() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// bad is a peer's misbehaviour.
func (i *in[T]) bad(format string, args ...any) error {
	return &rpc.PeerError{Who: i.peer.Who, Addr: i.peer.Addr, Err: fmt.Errorf("it sends what does not fit: "+format, args...)}
}

// attach gives the link to a new stream.
func (i *in[T]) attach(h *hello) (gen int, kicked chan struct{}, w *welcome, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.born != 0 && i.mu.born != h.Born {
		return 0, nil, nil, rpc.Refuse("%v was started again, and cannot join a run that has begun", i.peer.Who)
	}
	if i.mu.bye {
		return 0, nil, nil, rpc.Refuse("%v has left already", i.peer.Who)
	}
	i.mu.born, i.mu.window = h.Born, h.Window
	i.mu.gen++
	i.mu.stats.Streams++
	if i.mu.kicked != nil {
		close(i.mu.kicked)
	}
	i.mu.kicked = make(chan struct{})
	if i.mu.away != nil {
		i.mu.away.Stop()
	}
	return i.mu.gen, i.mu.kicked, &welcome{Born: i.mesh.born, Read: i.mu.read, Have: i.mu.next - 1}, nil
}

// detach is the end of a stream: the sender has to come back within a time.
func (i *in[T]) detach(gen int, why error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.gen != gen || i.mu.bye {
		return
	}
	patience := i.mesh.env.away
	gone := fmt.Errorf("its connection broke and did not come back within %v", patience)
	if !errors.Is(why, context.Canceled) && status.Code(why) != codes.Canceled { // which says no more
		gone = fmt.Errorf("%w: %s", gone, rpc.Text(why))
	}
	i.mu.away = time.AfterFunc(patience, func() {
		i.mu.Lock()
		back := i.mu.gen != gen
		i.mu.Unlock()
		if !back {
			i.mesh.lose(i.from, &rpc.PeerError{Who: i.peer.Who, Addr: i.peer.Addr, Awaited: "what it sends", Err: gone})
		}
	})
}

// forget stops waiting for the sender.
func (i *in[T]) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.away != nil {
		i.mu.away.Stop()
	}
}

// take puts a message of data where it belongs.
func (i *in[T]) take(gen int, raw *rpc.Message) error {
	p, m, err := unwrap(raw)
	if err != nil {
		return i.bad("%w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.gen != gen {
		return errOlder
	}
	part := i.mu.partial[p.seq]
	switch {
	case p.seq >= i.mu.next+maxAhead:
		return i.bad("item %d, item %d is not there yet", p.seq, i.mu.next)
	case p.seq < i.mu.next, part != nil && p.at < part.got:
		i.mu.stats.Repeats++
		i.mesh.cfg.Got(i.from, m, true)
		return nil
	case part == nil && p.at > 0, part != nil && p.at > part.got:
		return i.bad("message %d of item %d before those that it follows", p.at, p.seq)
	case part != nil && p.count != part.count:
		return i.bad("item %d in %d messages, before in %d", p.seq, p.count, part.count)
	}
	i.mesh.cfg.Got(i.from, m, false)
	i.mu.stats.Messages++
	if part == nil {
		drop, size := i.mesh.dropping(), int64(0)
		if !drop {
			if size, err = i.mesh.cfg.Decoder.Size(i.from, m); err != nil {
				return i.bad("item %d: %w", p.seq, err)
			}
		}
		// What is held by somebody who takes nothing is what the sender may have under way:
		// a window, or one item.
		if others := i.mu.next - 1 - i.mu.read + uint64(len(i.mu.partial)); others > 0 && i.mu.held+size > i.mu.window {
			return i.bad("item %d of %d bytes, while %d items of %d bytes are not taken: more than its window of %d bytes", p.seq, size, others, i.mu.held, i.mu.window)
		}
		part = &partial[T]{size: size, count: p.count, drop: drop}
		i.mu.partial[p.seq] = part
		i.mu.held += size
	}
	if !part.drop {
		if part.v, err = i.mesh.cfg.Decoder.Add(i.from, part.v, p.at, p.count, m); err != nil {
			return i.bad("message %d of item %d: %w", p.at, p.seq, err)
		}
	}
	part.got++
	for {
		part := i.mu.partial[i.mu.next]
		if part == nil || part.got < part.count {
			return nil
		}
		delete(i.mu.partial, i.mu.next)
		i.mu.next++
		i.mu.stats.Items++
		i.mesh.deliver(arrival[T]{in: i, v: part.v, size: part.size})
	}
}

// taken counts the next item as taken by the reader.
func (i *in[T]) taken(size int64) {
	i.mu.Lock()
	i.mu.read++
	i.mu.held -= size
	i.mu.Unlock()
	i.poke()
}

func (i *in[T]) readSoFar() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.read
}

// left is the sender's good end.
func (i *in[T]) left() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.bye {
		return
	}
	i.mu.bye = true
	i.mesh.mu.Lock()
	defer i.mesh.mu.Unlock()
	if !i.mesh.mu.draining {
		i.mesh.mu.queue = append(i.mesh.mu.queue, arrival[T]{in: i, bye: true})
	}
	i.mesh.notifyLocked()
}

// gone says whether the sender has left in good order.
func (i *in[T]) gone() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.bye
}

// whyRefused is why the sender was not let in, if it was not.
func (i *in[T]) whyRefused() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.refused
}

// there says whether the sender has been there.
func (i *in[T]) there() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.born != 0
}

var (
	errOlder  = status.Error(codes.Unavailable, "a newer stream of the same sender has taken over")
	errSilent = status.Error(codes.Unavailable, "it did not say who it is")
	errEnding = status.Error(codes.Unavailable, "this server is ending")
)

// serve is the handler of a stream.
func (m *Mesh[T]) serve(s rpc.Stream) error {
	if !m.enter() {
		select {
		case <-m.leaving:
		case <-m.ctx.Done():
			return errEnding
		}
		msg, err := note(kindLeft, &left{m.why})
		if err != nil {
			return err
		}
		return s.Send(msg)
	}
	defer m.serving.Done()
	hellos := make(chan *rpc.Message, 1)
	ended := make(chan error, 1)
	begin := make(chan func(*rpc.Message) error, 1)
	m.serving.Go(func() { ended <- listen(s, hellos, begin) })
	silent := time.NewTimer(m.env.away)
	defer silent.Stop()
	var h hello
	select {
	case first := <-hellos:
		if err := readNote(first, kindHello, &h); err != nil {
			return rpc.Refuse("the first message: %v", err)
		}
	case err := <-ended:
		return err
	case <-silent.C:
		return errSilent
	case <-m.ctx.Done():
		return errEnding
	}
	if err := m.accepts(s.Context(), &h); err != nil {
		m.refuse(s.Context(), &h, err)
		return err
	}
	i := m.ins[h.From]
	gen, kicked, w, err := i.attach(&h)
	if err != nil {
		return err
	}
	answer, err := note(kindWelcome, w)
	if err == nil {
		err = s.Send(answer)
	}
	if err != nil {
		i.detach(gen, err)
		return err
	}
	m.notify()
	begin <- func(msg *rpc.Message) error {
		switch msg.Kind {
		case kindData:
			if err := m.opened(s.Context()); err != nil {
				return err
			}
			return i.take(gen, msg)
		case kindBye:
			i.left()
			return nil
		}
		return i.bad("a message of kind %d", msg.Kind)
	}
	err = m.answer(s, i, w.Read, ended, kicked)
	var bad *rpc.PeerError
	if errors.As(err, &bad) {
		m.lose(i.from, err)
	}
	i.detach(gen, err)
	return err
}

// opened waits until items may be taken in, or nobody will take any.
func (m *Mesh[T]) opened(ctx context.Context) error {
	select {
	case <-m.cfg.Open():
		return nil
	case <-m.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ctx.Done():
		return errEnding
	}
}

// dropping says that nobody receives any more.
func (m *Mesh[T]) dropping() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.draining
}

// listen reads a stream: a hello, and then, once it knows how, all else.
func listen(s rpc.Stream, hellos chan<- *rpc.Message, begin <-chan func(*rpc.Message) error) error {
	m, err := s.Recv()
	if err != nil {
		return err
	}
	hellos <- m
	var put func(*rpc.Message) error
	select {
	case put = <-begin:
	case <-s.Context().Done():
		return s.Context().Err()
	}
	for {
		m, err := s.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := put(m); err != nil {
			return err
		}
	}
}

// answer acknowledges what is taken until the stream ends.
func (m *Mesh[T]) answer(s rpc.Stream, i *in[T], told uint64, ended <-chan error, kicked <-chan struct{}) error {
	leaving := m.leaving
	for {
		if read := i.readSoFar(); read > told {
			if err := s.Send(ack(read)); err != nil {
				return err
			}
			told = read
		}
		select {
		case <-i.wake:
		case err := <-ended:
			return err
		case <-kicked:
			return errOlder
		case <-m.ctx.Done():
			return errEnding
		case <-leaving:
			leaving = nil
			msg, err := note(kindLeft, &left{m.why})
			if err == nil {
				err = s.Send(msg)
			}
			if err != nil {
				return err
			}
		}
	}
}

// accepts says why a sender is not one to listen to.
func (m *Mesh[T]) accepts(ctx context.Context, h *hello) error {
	i := m.ins[h.From]
	switch {
	case h.Version != version:
		return rpc.Refuse("it speaks version %d, here is version %d; run the same release on all servers", h.Version, version)
	case h.Size != m.cfg.Size:
		return rpc.Refuse("it is of a run of %d graph servers, here are %d", h.Size, m.cfg.Size)
	case h.To != m.cfg.Rank:
		return rpc.Refuse("it wants graph server %d, here is graph server %d; is the list of addresses in the order of the ranks?", h.To, m.cfg.Rank)
	case i == nil:
		return rpc.Refuse("it says that it is graph server %d, from which graph server %d gets nothing", h.From, m.cfg.Rank)
	case h.Born == 0 || h.Window <= 0 || h.Window > maxWindow:
		return rpc.Refuse("a window of %d bytes, want 1 to %d", h.Window, int64(maxWindow))
	}
	if d := differ(Job{h.Job, h.Settings}, m.cfg.Job); d != "" {
		return rpc.Refuse("graph server %d has other settings than graph server %d: %s", h.From, m.cfg.Rank, d)
	}
	return rpc.Claim(ctx, i.peer.Who)
}

// refuse remembers who was not let in, and why. One of this run, that is not in it yet,
// ends it: it will not come together.
func (m *Mesh[T]) refuse(ctx context.Context, h *hello, err error) {
	i := m.ins[h.From]
	if i == nil || rpc.Claim(ctx, i.peer.Who) != nil {
		return
	}
	i.mu.Lock()
	i.mu.refused = rpc.Text(err)
	i.mu.Unlock()
	if h.Job == m.cfg.Job.ID && !i.there() {
		m.lose(h.From, &rpc.PeerError{Who: i.peer.Who, Addr: i.peer.Addr, Err: fmt.Errorf("it was refused: %w", rpc.Plain(err))})
	}
}
