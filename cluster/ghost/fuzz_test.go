package ghost

import (
	"fmt"
	"testing"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/lambda/codec"
)

// Whatever a peer sends as rows is refused, or is a message that this package would have
// sent itself; memory is bounded by what the head may say.
func FuzzRows(f *testing.F) {
	c, err := Config{Max: 1 << 16, Chunk: 64}.withDefaults()
	if err != nil {
		f.Fatal(err)
	}
	enc, err := codec.NewEncoder(codec.Options{Codec: codec.None})
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []*engine.RowMsg{{Cols: 3, Data: make([]float32, 9), Epoch: 300}, {Finished: true, Interval: 5}, {Pass: engine.Evaluation, Cols: 2}} {
		r, err := newRows(m, &c, enc)
		if err != nil {
			f.Fatal(err)
		}
		r.Encode(func(m *rpc.Message) bool {
			var part []byte
			if len(m.Parts) > 0 {
				part = m.Parts[0]
			}
			f.Add(m.Head, part, len(m.Parts) > 0)
			return true
		})
	}
	f.Fuzz(func(t *testing.T, head, frame []byte, has bool) {
		d := &decoder{c: &c, self: 1, got: func(int, *engine.RowMsg, *rpc.Message, bool) {}}
		msg := &rpc.Message{Head: head}
		if has {
			msg.Parts = [][]byte{frame}
		}
		if _, err := d.Size(0, msg); err != nil {
			return
		}
		v, err := d.Add(0, nil, 0, 1, msg)
		if err != nil {
			return
		}
		r, err := newRows(v.m, &c, enc)
		if err != nil || r.n != v.n {
			t.Fatalf("%+v was read, but cannot be sent: %v", v.m, err)
		}
		back, n, err := readHead(r.head())
		if err != nil || n != v.n || fmt.Sprint(back.Pass, back.Interval, back.Step, back.Epoch, back.Cols, back.Finished) != fmt.Sprint(v.m.Pass, v.m.Interval, v.m.Step, v.m.Epoch, v.m.Cols, v.m.Finished) {
			t.Errorf("%+v is written as %+v, %v", v.m, back, err)
		}
	})
}
