package wire

import (
	"encoding/binary"
	"fmt"
)

// Pack is messages one behind the other, for a transport that takes them all at once.
func Pack(msgs []*Message) ([]byte, error) {
	size := 0
	for _, m := range msgs {
		size += m.Size()
	}
	out := make([]byte, 0, size)
	for _, m := range msgs {
		at := len(out)
		out = append(out, 0, 0, 0, 0)
		var err error
		if out, err = m.Append(out); err != nil {
			return nil, err
		}
		binary.LittleEndian.PutUint32(out[at:], uint32(len(out)-at-4))
	}
	return out, nil
}

// Unpack reads what Pack has made. The messages share b's memory.
func Unpack(b []byte) ([]*Message, error) {
	var out []*Message
	for len(b) > 0 {
		var one []byte
		var err error
		if one, b, err = piece(b); err != nil {
			return nil, fmt.Errorf("read message %d of several: %w", len(out), err)
		}
		m, err := Parse(one)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
