package link

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dorylus/cluster/rpc"
)

// version of what is said on a stream.
const version = 1

// The kinds of messages. A sender says hello first, and is welcomed; then come data and
// acks; a sender that leaves says bye, a receiver that leaves says left.
const (
	kindHello uint16 = 1 + iota
	kindWelcome
	kindData
	kindAck
	kindBye
	kindLeft
)

// Bounds on what a peer may say.
const (
	maxChunks = 1 << 20
	maxAhead  = 1 << 20 // items beyond the first that is not there
)

// hello is a sender's first message.
type hello struct {
	Version  int               `json:"version"`
	Job      string            `json:"job"`
	Settings map[string]string `json:"settings,omitempty"`
	From     int               `json:"from"`
	To       int               `json:"to"`
	Size     int               `json:"size"`
	// Born tells the sender from one of the same rank that was there before.
	Born   uint64 `json:"born"`
	Window int64  `json:"window"`
}

// welcome answers it.
type welcome struct {
	Born uint64 `json:"born"`
	// Read is the number of items that have been taken, Have those that are there,
	// without a gap.
	Read uint64 `json:"read"`
	Have uint64 `json:"have"`
}

// left says that a receiver leaves; Why is empty where all is well.
type left struct {
	Why string `json:"why,omitempty"`
}

func note(kind uint16, v any) (*rpc.Message, error) {
	head, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write a message of kind %d: %w", kind, err)
	}
	return &rpc.Message{Kind: kind, Head: head}, nil
}

func readNote(m *rpc.Message, kind uint16, v any) error {
	if m.Kind != kind {
		return fmt.Errorf("a message of kind %d, want kind %d", m.Kind, kind)
	}
	if err := json.Unmarshal(m.Head, v); err != nil {
		return fmt.Errorf("read a message of kind %d: %w", kind, err)
	}
	return nil
}

// differ says what two jobs disagree on; empty: nothing.
func differ(theirs, ours Job) string {
	var d []string
	if theirs.ID != ours.ID {
		d = append(d, fmt.Sprintf("job %q, here %q", theirs.ID, ours.ID))
	}
	keys := slices.Collect(maps.Keys(theirs.Settings))
	for k := range ours.Settings {
		if _, ok := theirs.Settings[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	value := func(s map[string]string, k string) string {
		if v, ok := s[k]; ok {
			return fmt.Sprintf("%q", v)
		}
		return "not set"
	}
	for _, k := range keys {
		if a, b := value(theirs.Settings, k), value(ours.Settings, k); a != b {
			d = append(d, fmt.Sprintf("%s is %s, here %s", k, a, b))
		}
	}
	if more := len(d) - 8; more > 0 {
		d = append(d[:8], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(d, "; ")
}

// place is where a message of data belongs.
type place struct {
	seq       uint64 // of the item, from 1
	at, count int    // of its messages
}

// wrap puts p before an item's own head.
func (p place) wrap(m *rpc.Message) *rpc.Message {
	head := make([]byte, 0, 12+len(m.Head))
	head = binary.AppendUvarint(head, p.seq)
	head = binary.AppendUvarint(head, uint64(p.at))
	head = binary.AppendUvarint(head, uint64(p.count))
	return &rpc.Message{Kind: kindData, Head: append(head, m.Head...), Parts: m.Parts}
}

var errPlace = errors.New("a message that does not say where it belongs")

// unwrap is wrap backwards.
func unwrap(m *rpc.Message) (place, *rpc.Message, error) {
	var n [3]uint64
	head := m.Head
	for i := range n {
		v, k := binary.Uvarint(head)
		if k <= 0 {
			return place{}, nil, errPlace
		}
		n[i], head = v, head[k:]
	}
	if n[0] == 0 || n[2] == 0 || n[2] > maxChunks || n[1] >= n[2] {
		return place{}, nil, fmt.Errorf("message %d of %d of item %d: there is no such one", n[1], n[2], n[0])
	}
	return place{n[0], int(n[1]), int(n[2])}, &rpc.Message{Kind: m.Kind, Head: head, Parts: m.Parts}, nil
}

func ack(read uint64) *rpc.Message {
	return &rpc.Message{Kind: kindAck, Head: binary.AppendUvarint(nil, read)}
}

func readAck(m *rpc.Message) (uint64, error) {
	v, n := binary.Uvarint(m.Head)
	if n <= 0 || n != len(m.Head) {
		return 0, errors.New("an acknowledgement without a number")
	}
	return v, nil
}
