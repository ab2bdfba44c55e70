package fleet

import (
	"fmt"
	"iter"

	"dorylus/lambda/codec"
	"dorylus/lambda/shard"
	"dorylus/lambda/wire"
)

// A shard goes as messages of about chunkBytes, whose frames have frameBytes of values
// each, or one row where that is more: small beside what either side's memory has to hold
// anyway, and beside wire.MaxMessage.
const (
	frameBytes = 4 << 20
	chunkBytes = 16 << 20
)

// bringer makes the messages of a shard, one when it is asked for: there is never more of
// a second copy of the shard.
type bringer struct {
	t     *workItem
	s     *shard.Shard
	next  func() ([]byte, bool)
	stop  func()
	ahead []byte // the first frame of the next message; nil: there is none
	made  int    // messages
	bytes int64  // of them
	whole bool   // all of them have been sent
}

// bring is a bringer of the task's shard. It has to be stopped.
func (t *workItem) bring(enc *codec.Encoder) *bringer {
	s := shard.Cut(t.f.program(), t.Pass, t.Interval, t.all)
	b := &bringer{t: t, s: s}
	b.next, b.stop = iter.Pull(s.Frames(enc, t.f.frameBytes))
	return b
}

// message is the next one. It reads the engine's buffers, and says errOver once the task
// is over.
func (b *bringer) message() (m *wire.Message, more bool, err error) {
	b.t.gate.RLock()
	defer b.t.gate.RUnlock()
	if b.t.over.Load() {
		return nil, false, errOver
	}
	var parts [][]byte
	if b.made == 0 {
		b.ahead, _ = b.next()
	}
	for size := 0; b.ahead != nil && (size == 0 || size+len(b.ahead) <= b.t.f.chunkBytes); b.ahead, _ = b.next() {
		size += len(b.ahead)
		parts = append(parts, b.ahead)
	}
	more = b.ahead != nil
	m = &wire.Message{Chunk: &wire.Chunk{N: b.made, More: more}, Parts: parts}
	if b.made == 0 {
		head, err := b.s.Head()
		if err != nil {
			return nil, false, fmt.Errorf("write the shard of interval %d: %w", b.t.Interval, err)
		}
		m.Chunk, m.Shard = nil, &wire.Shard{Head: head, More: more}
	}
	b.made++
	b.bytes += int64(m.Size())
	return m, more, nil
}

// brought notes the size of a shard.
func (f *Fleet) brought(b *bringer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.shardBytes[b.t.key] = b.bytes
}
