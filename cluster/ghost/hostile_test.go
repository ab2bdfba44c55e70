package ghost

import (
	"strings"
	"testing"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/lambda/codec"
)

// Every way in which rows do not fit what was announced has its own words.
func TestDecoderSaysWhatIsWrong(t *testing.T) {
	config := func(c Config) Config {
		c, err := c.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := config(Config{Chunk: 32, Max: 4000})
	messages := func(m *engine.RowMsg, c Config) []*rpc.Message {
		enc, err := codec.NewEncoder(codec.Options{Wire: c.Wire, Codec: codec.None})
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRows(m, &c, enc)
		if err != nil {
			t.Fatal(err)
		}
		var all []*rpc.Message
		r.Encode(func(m *rpc.Message) bool { all = append(all, m); return true })
		return all
	}
	rows := func() *engine.RowMsg { return &engine.RowMsg{Step: 3, Cols: 2, Data: make([]float32, 24)} } // 12 rows, 4 per message
	good := messages(rows(), c)
	if len(good) != 3 {
		t.Fatalf("%d messages, want 3", len(good))
	}
	other := messages(&engine.RowMsg{Step: 3, Cols: 3, Data: make([]float32, 24)}, c)
	half := messages(rows(), config(Config{Chunk: 32, Wire: codec.BF16}))
	head := good[0].Head
	for says, all := range map[string][]*rpc.Message{
		"no head of rows":                           {{Head: []byte{9, 0, 0, 0, 0, 0, 0}}},
		"its head is":                               {{Head: append([]byte{}, head[:4]...)}},
		"need 8000 bytes, at most":                  messages(&engine.RowMsg{Cols: 2, Data: make([]float32, 2000)}, config(Config{})),
		"message 1 brings rows again":               {good[0], {Parts: good[0].Parts}, good[1]},
		"8 of 12 rows have arrived":                 {good[0], good[2]},
		"rows in bf16, want fp32":                   half,
		"has 0 frames, want 1":                      {{Head: head}},
		"has 2 frames, want 1":                      {{Head: head, Parts: [][]byte{good[0].Parts[0], good[0].Parts[0]}}},
		"read frame":                                {{Head: head, Parts: [][]byte{make([]byte, 10)}}},
		"1 messages of 1 parts, without rows":       {{Head: messages(&engine.RowMsg{Finished: true}, c)[0].Head, Parts: good[0].Parts}},
		"a tensor of 8 x 3 into a matrix of 12 x 2": {{Head: head, Parts: other[0].Parts}},
	} {
		d := &decoder{c: &c, self: 1, got: func(int, *engine.RowMsg, *rpc.Message, bool) {}}
		_, err := d.Size(0, all[0])
		var v *arriving
		for i, m := range all {
			if err == nil {
				v, err = d.Add(0, v, i, len(all), m)
			}
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %q", err, says)
		}
	}
}
