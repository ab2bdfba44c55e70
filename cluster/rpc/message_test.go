package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func samples() []*Message {
	return []*Message{
		{},
		{Kind: 1, Head: []byte("head")},
		{Kind: 65535, Parts: [][]byte{{}, {1, 2, 3}, {}}},
		{Kind: 7, Head: bytes.Repeat([]byte{9}, 300), Parts: [][]byte{bytes.Repeat([]byte{5}, 70000)}},
	}
}

func frame(t testing.TB, m *Message) []byte {
	t.Helper()
	b, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMessagesComeBack(t *testing.T) {
	for i, m := range samples() {
		b := frame(t, m)
		if len(b) != m.Size() {
			t.Errorf("message %d has %d bytes, Size says %d", i, len(b), m.Size())
		}
		got, err := Parse(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("message %d comes back as %+v, %v", i, got, err)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	edit := func(at int, v byte) []byte {
		b := frame(t, samples()[2])
		b[at] = v
		return b
	}
	long := frame(t, &Message{})
	binary.LittleEndian.PutUint32(long[8:], MaxHead+1)
	for says, b := range map[string][]byte{
		"its front alone has 12": make([]byte, 11),
		`it begins with "XR"`:    edit(0, 'X'),
		"byte 3 is 1":            edit(3, 1),
		"the lengths of 65283 parts do not fit": func() []byte {
			b := edit(7, 255)
			return b
		}(),
		"part 1 has 4, 3 are left":              edit(16, 4),
		"1 follow the last part":                append(frame(t, samples()[2]), 0),
		"its head has 1048577, at most 1048576": long,
		"version 2, but this program reads ver": edit(2, 2),
	} {
		if m, err := Parse(b); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %+v, %v, want an error with %q", m, err, says)
		}
	}
	if _, err := Parse(edit(2, 2)); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v, want ErrVersion", err)
	}
}

func TestTooLargeIsNotSent(t *testing.T) {
	part := make([]byte, 1<<20)
	for says, m := range map[string]*Message{
		"cut it":               {Parts: make([][]byte, 0)},
		"its head has 1048577": {Head: make([]byte, MaxHead+1)},
		"it has 65536 parts":   {Parts: make([][]byte, MaxParts+1)},
	} {
		if says == "cut it" {
			for range 65 {
				m.Parts = append(m.Parts, part)
			}
		}
		if _, err := m.Append(nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %q", err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range samples() {
		f.Add(frame(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		if again := frame(t, m); !bytes.Equal(again, b) {
			t.Errorf("%x reads as %+v, which is written as %x", b, m, again)
		}
	})
}
