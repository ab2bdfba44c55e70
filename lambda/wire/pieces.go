package wire

import (
	"encoding/binary"
	"encoding/json"
)

// Pieces is the encoding of Append in pieces, of which the parts are the message's own
// memory.
func (m *Message) Pieces() ([][]byte, error) {
	head, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	first := binary.LittleEndian.AppendUint32(make([]byte, 0, 8+len(head)), uint32(len(head)))
	out := [][]byte{append(first, head...)}
	for _, p := range m.Parts {
		if len(p) == 0 {
			out = append(out, []byte{0, 0, 0, 0})
			continue
		}
		out = append(out, binary.LittleEndian.AppendUint32(nil, uint32(len(p))), p)
	}
	return out, nil
}
