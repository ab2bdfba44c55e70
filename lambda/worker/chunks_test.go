package worker

import (
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/lambda/wire"
)

// A shard in chunks is the shard.
func TestAShardInChunks(t *testing.T) {
	for _, size := range []int{1, 12, 1000} {
		f := newFixture(t, engine.Training)
		want, err := answers(t, device(t), 1<<20, f.messages(t))
		if err != nil {
			t.Fatal(err)
		}
		in := slices.Concat([]*wire.Message{f.job}, chunks(t, f.shard, size), f.weights, f.tasks)
		got, err := answers(t, device(t), 1<<20, in)
		if err != nil || len(got) != len(want) {
			t.Fatalf("in %d messages: %d answers, want %d: %v", len(in), len(got), len(want), err)
		}
		for i := range got {
			if !slices.EqualFunc(got[i].Parts, want[i].Parts, slices.Equal[[]byte]) {
				t.Errorf("in frames of %d bytes: answer %d differs", size, i)
			}
		}
	}
}

// Chunks that are missing, come twice, in another order or in front of their shard end the
// stream with what is wrong, and so does anything else between them; the worker stays of
// use.
func TestChunksThatMakeNoSense(t *testing.T) {
	f := newFixture(t, engine.Training)
	good := chunks(t, f.shard, 12)
	for name, c := range map[string]struct {
		change func(in []*wire.Message) []*wire.Message
		says   string
	}{
		"no shard":        {func(in []*wire.Message) []*wire.Message { return in[1:] }, "no shard has begun"},
		"one is missing":  {func(in []*wire.Message) []*wire.Message { return slices.Delete(in, 2, 3) }, "chunk 3 came before the shard of interval 0 was whole: chunk 2 is next"},
		"one comes twice": {func(in []*wire.Message) []*wire.Message { return slices.Insert(in, 2, in[1]) }, "chunk 1 came before"},
		"another order": {func(in []*wire.Message) []*wire.Message {
			in[2], in[3] = in[3], in[2]
			return in
		}, "chunk 3 came before"},
		"one too many": {func(in []*wire.Message) []*wire.Message {
			last := *in[len(in)-1].Chunk
			return append(in, &wire.Message{Chunk: &wire.Chunk{N: last.N + 1}})
		}, "no shard has begun"},
		"the end is missing":  {func(in []*wire.Message) []*wire.Message { return append(in[:len(in)-1], f.tasks...) }, "another message came before the shard"},
		"a weight between":    {func(in []*wire.Message) []*wire.Message { return slices.Insert(in, 2, f.weights[0]) }, "another message came before"},
		"a shard between":     {func(in []*wire.Message) []*wire.Message { return slices.Insert(in, 2, in[0]) }, "another message came before"},
		"the end comes early": {func(in []*wire.Message) []*wire.Message { in[2] = early(in[2]); return in }, "frames are missing"},
		"the end comes late": {func(in []*wire.Message) []*wire.Message {
			in[len(in)-1] = late(in[len(in)-1])
			return append(in, f.tasks[0])
		}, "another message"},
		"frames are too many":  {func(in []*wire.Message) []*wire.Message { in[len(in)-1] = twice(in[len(in)-1]); return in }, "1 frames too many"},
		"what is no frame":     {func(in []*wire.Message) []*wire.Message { in[1] = broken(in[1]); return in }, "are no frame"},
		"another one's frames": {func(in []*wire.Message) []*wire.Message { in[1] = with(in[1], f.weights[0].Parts[0]); return in }, "want at most"},
	} {
		t.Run(name, func(t *testing.T) {
			dev := device(t)
			w := New(Config{Device: dev, Memory: 1 << 20})
			defer w.Close()
			in := append([]*wire.Message{f.job}, c.change(slices.Clone(good))...)
			if _, err := w.Serve(t.Context(), &script{in: in}, Invitation{}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the stream ended with %v, want %q", err, c.says)
			}
			again := &script{in: f.messages(t)}
			if _, err := w.Serve(t.Context(), again, Invitation{}); err != nil || 2*(len(again.out)-1) != len(f.tasks) {
				t.Errorf("the next stream: %d answers, %v", len(again.out)-1, err)
			}
		})
	}
}

func early(m *wire.Message) *wire.Message {
	return &wire.Message{Chunk: &wire.Chunk{N: m.Chunk.N}, Parts: m.Parts}
}

func late(m *wire.Message) *wire.Message {
	return &wire.Message{Chunk: &wire.Chunk{N: m.Chunk.N, More: true}, Parts: m.Parts}
}

func with(m *wire.Message, parts ...[]byte) *wire.Message {
	return &wire.Message{Chunk: m.Chunk, Parts: parts}
}

func twice(m *wire.Message) *wire.Message  { return with(m, m.Parts[0], m.Parts[0]) }
func broken(m *wire.Message) *wire.Message { return with(m, []byte{1, 2, 3}) }
