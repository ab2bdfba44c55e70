package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"dorylus/cluster/rpc"
)

// The kinds of notes.
const (
	kindGive    = byte(1 + iota) // to the hub: what this server gives to all under a key
	kindCollect                  // to the hub: what it gives to the hub alone
	kindAll                      // from the hub: what all have given, by rank
	kindTaken                    // from the hub: it has what was to be collected
	kindMissing                  // from the hub: who has not given under a key
	kindStop                     // the run is to end, for the reason in the key
	kindLost                     // the run is over: a rank, its address as key, a part that says why
	kinds       = int(kindLost)
)

const (
	chunkBytes = 1 << 20
	maxKey     = 4096
	maxServers = 1 << 16
	maxBytes   = 8 << 30 // of all parts
)

// note is what servers tell each other.
type note struct {
	kind  byte
	key   string
	ranks []int
	parts [][]byte
}

func (n *note) bytes() int64 {
	var all int64
	for _, p := range n.parts {
		all += int64(len(p))
	}
	return all
}

// Size implements link.Item.
func (n *note) Size() int64 { return n.bytes() + 256 }

// Chunks implements link.Item.
func (n *note) Chunks() int { return max(int((n.bytes()+chunkBytes-1)/chunkBytes), 1) }

// String implements link.Item.
func (n *note) String() string {
	return [...]string{"", "its part of", "its part of", "the parts of all for", "the receipt of", "who is missing for", "the wish to stop:", "the loss of a server at"}[n.kind] + fmt.Sprintf(" %q", n.key)
}

// Encode implements link.Item: the parts one behind the other, cut into messages; the
// first has the head: kind, key, ranks, lengths of the parts.
func (n *note) Encode(yield func(*rpc.Message) bool) {
	head := []byte{n.kind}
	head = binary.AppendUvarint(head, uint64(len(n.key)))
	head = append(head, n.key...)
	head = binary.AppendUvarint(head, uint64(len(n.ranks)))
	for _, r := range n.ranks {
		head = binary.AppendUvarint(head, uint64(r))
	}
	head = binary.AppendUvarint(head, uint64(len(n.parts)))
	for _, p := range n.parts {
		head = binary.AppendUvarint(head, uint64(len(p)))
	}
	m, room := &rpc.Message{Head: head}, chunkBytes
	for _, p := range n.parts {
		for len(p) > 0 {
			if room == 0 {
				if !yield(m) {
					return
				}
				m, room = &rpc.Message{}, chunkBytes
			}
			k := min(room, len(p))
			m.Parts = append(m.Parts, p[:k:k])
			p, room = p[k:], room-k
		}
	}
	yield(m)
}

var errNote = errors.New("its head is no head of a note")

// readHead is a note whose parts are nil, and their lengths.
func readHead(head []byte) (*note, []int, error) {
	if len(head) == 0 || head[0] == 0 || int(head[0]) > kinds {
		return nil, nil, errNote
	}
	n := &note{kind: head[0]}
	head = head[1:]
	number := func(most uint64) (int, bool) {
		v, k := binary.Uvarint(head)
		if k <= 0 || v > most {
			return 0, false
		}
		head = head[k:]
		return int(v), true
	}
	numbers := func(most uint64) ([]int, bool) {
		count, ok := number(maxServers)
		if !ok || count > len(head) { // a byte each, at least
			return nil, false
		}
		var all []int
		for range count {
			v, ok := number(most)
			if !ok {
				return nil, false
			}
			all = append(all, v)
		}
		return all, true
	}
	size, ok := number(maxKey)
	if !ok || size > len(head) {
		return nil, nil, errNote
	}
	n.key, head = string(head[:size]), head[size:]
	if n.ranks, ok = numbers(maxServers); !ok {
		return nil, nil, errNote
	}
	lengths, ok := numbers(math.MaxInt64)
	if !ok || len(head) > 0 {
		return nil, nil, errNote
	}
	var all int64
	for _, l := range lengths {
		if all += int64(l); all > maxBytes || int64(l) > maxBytes {
			return nil, nil, fmt.Errorf("%v: more than %d bytes", n, int64(maxBytes))
		}
	}
	return n, lengths, nil
}

// arriving is a note that is being put together. Memory grows with what has come, not
// with what was announced.
type arriving struct {
	note    *note
	lengths []int
	at      int // the part that is being filled
}

// decoder implements link.Decoder.
type decoder struct{}

// Size implements link.Decoder.
func (decoder) Size(_ int, first *rpc.Message) (int64, error) {
	_, lengths, err := readHead(first.Head)
	if err != nil {
		return 0, err
	}
	size := int64(256)
	for _, l := range lengths {
		size += int64(l)
	}
	return size, nil
}

// Add implements link.Decoder.
func (decoder) Add(_ int, v *arriving, i, count int, m *rpc.Message) (*arriving, error) {
	if i == 0 {
		n, lengths, err := readHead(m.Head)
		if err != nil {
			return nil, err
		}
		n.parts = make([][]byte, len(lengths))
		v = &arriving{note: n, lengths: lengths}
		v.skip()
	} else if len(m.Head) > 0 {
		return nil, errNote
	}
	for _, p := range m.Parts {
		if v.at == len(v.lengths) || len(v.note.parts[v.at])+len(p) > v.lengths[v.at] {
			return nil, fmt.Errorf("%v: more bytes than its parts have", v.note)
		}
		v.note.parts[v.at] = append(v.note.parts[v.at], p...)
		v.skip()
	}
	if i == count-1 && v.at < len(v.lengths) {
		return nil, fmt.Errorf("%v: part %d has %d bytes, want %d", v.note, v.at, len(v.note.parts[v.at]), v.lengths[v.at])
	}
	return v, nil
}

// skip goes on to the first part that is not full.
func (v *arriving) skip() {
	for v.at < len(v.lengths) && len(v.note.parts[v.at]) == v.lengths[v.at] {
		if v.note.parts[v.at] == nil {
			v.note.parts[v.at] = []byte{}
		}
		v.at++
	}
}
