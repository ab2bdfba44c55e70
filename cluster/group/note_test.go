package group

import (
	"bytes"
	"reflect"
	"testing"

	"dorylus/cluster/rpc"
)

// pass is what comes out where n goes in.
func pass(n *note) (*note, error) {
	var v *arriving
	var err error
	i := 0
	n.Encode(func(m *rpc.Message) bool {
		if i == 0 {
			var size int64
			if size, err = (decoder{}).Size(0, m); err == nil && size != n.Size() {
				panic("sizes differ")
			}
		}
		if err == nil {
			v, err = decoder{}.Add(0, v, i, n.Chunks(), m)
		}
		i++
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	if i != n.Chunks() {
		panic("another number of messages")
	}
	return v.note, nil
}

func TestNotesComeBack(t *testing.T) {
	big := bytes.Repeat([]byte{1, 2, 3}, chunkBytes)
	for _, n := range []*note{
		{kind: kindStop, key: "why", parts: [][]byte{}},
		{kind: kindGive, key: "k", parts: [][]byte{{}}},
		{kind: kindAll, key: "k", parts: [][]byte{{}, big, {}, {5}, big[:chunkBytes-1], {}}},
		{kind: kindAll, parts: [][]byte{big[:chunkBytes]}},
		{kind: kindMissing, key: "k", ranks: []int{0, 7, 65535}, parts: [][]byte{}},
	} {
		got, err := pass(n)
		if err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("%v with parts of %d bytes comes back as %v, %v", n, n.bytes(), got, err)
		}
	}
}

func FuzzNote(f *testing.F) {
	for _, n := range []*note{{kind: kindAll, key: "k", parts: [][]byte{{1}, {}, {2, 3}}}, {kind: kindMissing, ranks: []int{1, 300}}} {
		n.Encode(func(m *rpc.Message) bool { f.Add(m.Head, []byte{1, 2, 3}); return true })
	}
	f.Add([]byte{3, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, []byte{1})
	f.Fuzz(func(t *testing.T, head, body []byte) {
		m := &rpc.Message{Head: head, Parts: [][]byte{body}}
		if _, err := (decoder{}).Size(0, m); err != nil {
			return
		}
		v, err := decoder{}.Add(0, nil, 0, 1, m)
		if err != nil {
			return
		}
		if again, err := pass(v.note); err != nil || !reflect.DeepEqual(again.parts, v.note.parts) || again.key != v.note.key {
			t.Errorf("%x %x is %+v, again %+v, %v", head, body, v.note, again, err)
		}
	})
}
