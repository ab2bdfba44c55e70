package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version of the frame that this package writes, and the only one it reads.
const Version = 1

// Limits of a message, in bytes and parts. Larger things are cut by whoever sends them.
const (
	MaxMessage = 64 << 20
	MaxHead    = 1 << 20
	MaxParts   = 1<<16 - 1
)

// ErrVersion: the peer is of another release.
var ErrVersion = errors.New("message of another version")

// Message is what travels. What kind, head and parts mean is up to the service.
type Message struct {
	Kind  uint16
	Head  []byte
	Parts [][]byte
}

// The frame: magic (2 bytes), version, a zero; kind (2), number of parts (2), length of
// the head (4), of each part (4 each); head; parts. Numbers are little-endian. Nothing
// may follow.
const (
	magic0, magic1 = 'D', 'R'
	fixed          = 12
)

// Size is the length of the frame, in bytes.
func (m *Message) Size() int {
	n := fixed + len(m.Head)
	for _, p := range m.Parts {
		n += 4 + len(p)
	}
	return n
}

// front is the frame up to the parts.
func (m *Message) front() ([]byte, error) {
	switch n := m.Size(); {
	case n > MaxMessage:
		return nil, fmt.Errorf("send a message of kind %d: %d bytes, at most %d may be; cut it", m.Kind, n, MaxMessage)
	case len(m.Head) > MaxHead:
		return nil, fmt.Errorf("send a message of kind %d: its head has %d bytes, at most %d may be", m.Kind, len(m.Head), MaxHead)
	case len(m.Parts) > MaxParts:
		return nil, fmt.Errorf("send a message of kind %d: it has %d parts, at most %d may be", m.Kind, len(m.Parts), MaxParts)
	}
	b := make([]byte, 0, fixed+4*len(m.Parts)+len(m.Head))
	b = append(b, magic0, magic1, Version, 0)
	b = binary.LittleEndian.AppendUint16(b, m.Kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.Parts)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Head)))
	for _, p := range m.Parts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
	}
	return append(b, m.Head...), nil
}

// Append appends the frame to dst.
func (m *Message) Append(dst []byte) ([]byte, error) {
	front, err := m.front()
	if err != nil {
		return nil, err
	}
	dst = append(dst, front...)
	for _, p := range m.Parts {
		dst = append(dst, p...)
	}
	return dst, nil
}

// Parse reads a frame. Head and parts share b's memory.
func Parse(b []byte) (*Message, error) {
	bad := func(format string, args ...any) (*Message, error) {
		return nil, fmt.Errorf("read a message of %d bytes: %s", len(b), fmt.Sprintf(format, args...))
	}
	switch {
	case len(b) > MaxMessage:
		return bad("at most %d may be", MaxMessage)
	case len(b) < fixed:
		return bad("its front alone has %d", fixed)
	case b[0] != magic0 || b[1] != magic1:
		return bad("it begins with %q, want %q", b[:2], []byte{magic0, magic1})
	case b[2] != Version:
		return nil, fmt.Errorf("read a message: version %d, but this program reads version %d; run the same release on all servers: %w", b[2], Version, ErrVersion)
	case b[3] != 0:
		return bad("byte 3 is %d, want 0", b[3])
	}
	m := &Message{Kind: binary.LittleEndian.Uint16(b[4:])}
	parts := int(binary.LittleEndian.Uint16(b[6:]))
	head := int64(binary.LittleEndian.Uint32(b[8:]))
	if head > MaxHead {
		return bad("its head has %d, at most %d may be", head, MaxHead)
	}
	at := int64(fixed + 4*parts)
	if at+head > int64(len(b)) {
		return bad("a head of %d and the lengths of %d parts do not fit", head, parts)
	}
	lengths := b[fixed:at]
	if head > 0 {
		m.Head = b[at : at+head : at+head]
	}
	at += head
	if parts > 0 {
		m.Parts = make([][]byte, parts)
	}
	for i := range m.Parts {
		n := int64(binary.LittleEndian.Uint32(lengths[4*i:]))
		if n > int64(len(b))-at {
			return bad("part %d has %d, %d are left", i, n, int64(len(b))-at)
		}
		m.Parts[i] = b[at : at+n : at+n]
		at += n
	}
	if at != int64(len(b)) {
		return bad("%d follow the last part", int64(len(b))-at)
	}
	return m, nil
}
