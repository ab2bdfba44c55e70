package worker

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/lambda/codec"
	"dorylus/lambda/shard"
	"dorylus/lambda/wire"
)

// large has all that a shard and a program can have: edges, targets, constant rows.
var large = model.Config{Model: "gcn", Layers: 2, Hidden: 3, Features: 4, Classes: 3, Sparse: true, MultiLabel: true, InputDropout: 0.5, Dropout: 0.5, Bias: true}

func frames(t testing.TB) *codec.Encoder {
	t.Helper()
	enc, err := codec.NewEncoder(codec.Options{Codec: codec.None})
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// fixture is what a graph server says to a worker, one walk of an interval: the job, the
// shard, the weights, and for each tensor step a task with a block.
type fixture struct {
	prog           *model.Program
	job            *wire.Message
	shard          *shard.Shard
	weights, tasks []*wire.Message
}

func newFixture(t testing.TB, pass engine.Pass) *fixture {
	t.Helper()
	prog, err := large.Build()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{prog: prog, job: &wire.Message{Job: &wire.Job{Model: large, Steps: len(prog.Steps), Precision: "fp32", Codec: "none"}}}
	f.shard = &shard.Shard{
		Pass: pass, Train: pass == engine.Training, Const: make([]*kernels.Mat, len(prog.Bufs)), LossScale: 1,
		Sparse: &kernels.CSR{Cols: 4, RowPtr: []int64{0, 1, 1, 3}, Col: []int32{3, 0, 2}},
		Seen:   [][][]int32{make([][]int32, prog.Levels)},
	}
	for k := range prog.Levels {
		f.shard.Ptr = append(f.shard.Ptr, []int{0, 3})
		f.shard.IDs = append(f.shard.IDs, []int32{4, 5, 6})
		if k > 0 {
			f.shard.Self = append(f.shard.Self, nil)
		}
	}
	steps := prog.Forward
	if f.shard.Train {
		steps = len(prog.Steps)
		f.shard.Labels = []int32{0, -1, 0}
		f.shard.Targets = &kernels.CSR{Cols: 3, RowPtr: []int64{0, 2, 2, 3}, Col: []int32{0, 2, 1}}
	}
	enc := frames(t)
	zeros := func(rows, cols int) []byte {
		return enc.Append(nil, 0, kernels.FromSlice(rows, cols, make([]float32, rows*cols)))
	}
	var params []wire.Weight
	for p, spec := range prog.Params {
		w := wire.Weight{Param: p, Hash: 7}
		params = append(params, w)
		f.weights = append(f.weights, &wire.Message{Weight: &w, Parts: [][]byte{zeros(spec.Rows, spec.Cols)}})
	}
	for i := range steps {
		step := &prog.Steps[i]
		if !step.Kind.Tensor() {
			continue
		}
		st := wire.Step{Step: i, Blocks: []int{0}}
		for _, b := range step.Out {
			if !prog.Bufs[b].Edges {
				st.Ships = append(st.Ships, b)
			}
		}
		if f.shard.Train {
			if st.Grads = step.Grads; len(st.Grads) > 0 {
				st.Sums = []int{1}
			}
		}
		block := &wire.Message{Block: &wire.Block{ID: int64(i), Step: i}}
		for _, b := range step.In {
			if writer := slices.IndexFunc(prog.Steps, func(s model.Step) bool { return slices.Contains(s.Out, b) }); writer >= 0 && !prog.Bufs[b].Edges {
				block.Block.Bufs = append(block.Block.Bufs, wire.Found{Buf: b, Writer: writer})
				block.Parts = append(block.Parts, zeros(3, prog.Bufs[b].Cols))
			}
		}
		f.tasks = append(f.tasks, &wire.Message{Task: &wire.Task{ID: int64(i), Pass: pass, Walk: 1, Steps: []wire.Step{st}, Params: params}}, block)
	}
	return f
}

// messages are the fixture's, in order.
func (f *fixture) messages(t testing.TB) []*wire.Message {
	t.Helper()
	out := []*wire.Message{f.job, whole(t, f.shard)}
	return append(append(out, f.weights...), f.tasks...)
}

// whole is a shard in one message.
func whole(t testing.TB, s *shard.Shard) *wire.Message { return chunks(t, s, 1<<20)[0] }

// chunks are a shard in messages of one frame of at most size bytes each; all of it in one
// where that is enough for any.
func chunks(t testing.TB, s *shard.Shard, size int) []*wire.Message {
	t.Helper()
	head, err := s.Head()
	if err != nil {
		t.Fatal(err)
	}
	parts := slices.Collect(s.Frames(frames(t), size))
	out := []*wire.Message{{Shard: &wire.Shard{Head: head}, Parts: parts}}
	if size >= 1<<20 {
		return out
	}
	out[0].Parts, out[0].Shard.More = nil, true
	for i, p := range parts {
		out = append(out, &wire.Message{Chunk: &wire.Chunk{N: i + 1, More: i < len(parts)-1}, Parts: [][]byte{p}})
	}
	return out
}

// answers are what a new worker says to messages, without its hello.
func answers(t testing.TB, dev kernels.Device, memory int64, in []*wire.Message) ([]*wire.Message, error) {
	t.Helper()
	w := New(Config{Device: dev, Memory: memory})
	defer w.Close()
	c := &script{in: in}
	_, err := w.Serve(context.Background(), c, Invitation{})
	return c.out[1:], err
}

func TestAWalkOfTheFixture(t *testing.T) {
	for _, pass := range []engine.Pass{engine.Training, engine.Evaluation} {
		f := newFixture(t, pass)
		got, err := answers(t, device(t), 1<<20, f.messages(t))
		if err != nil || 2*len(got) != len(f.tasks) {
			t.Fatalf("pass %d: %d answers to %d messages: %v", pass, len(got), len(f.tasks), err)
		}
		for i, m := range got {
			st := f.tasks[2*i].Task.Steps[0]
			if m.Result == nil || len(m.Parts) != len(st.Ships)+len(st.Grads) {
				t.Errorf("pass %d, step %d: the answer is %+v, %+v, want %d parts", pass, st.Step, m.Result, m.Fail, len(st.Ships)+len(st.Grads))
			}
		}
	}
}

// A loss that is no number comes back as one.
func TestALossOfNaNIsSent(t *testing.T) {
	f := newFixture(t, engine.Training)
	nan := float32(math.NaN())
	for _, m := range f.weights {
		spec := f.prog.Params[m.Weight.Param]
		m.Parts[0] = frames(t).Append(nil, 0, kernels.FromSlice(spec.Rows, spec.Cols, slices.Repeat([]float32{nan}, spec.Rows*spec.Cols)))
	}
	for _, m := range f.tasks {
		if m.Block != nil {
			for i, b := range m.Block.Bufs {
				cols := f.prog.Bufs[b.Buf].Cols
				m.Parts[i] = frames(t).Append(nil, 0, kernels.FromSlice(3, cols, slices.Repeat([]float32{nan}, 3*cols)))
			}
		}
	}
	got, err := answers(t, device(t), 1<<20, f.messages(t))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := wire.Pack(got)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = wire.Unpack(packed); err != nil {
		t.Fatal(err)
	}
	for _, m := range got {
		if m.Result != nil && math.IsNaN(m.Result.Loss) {
			return
		}
	}
	t.Errorf("none of %d answers has a loss that is NaN", len(got))
}

// Whatever is wrong with a task, its failure is an answer, and the next task runs.
func TestHostileTasksFail(t *testing.T) {
	for name, c := range map[string]struct {
		pass   engine.Pass
		change func(f *fixture, task *wire.Task, block *wire.Message)
		says   string
	}{
		"a step behind an evaluation": {engine.Evaluation, func(f *fixture, t *wire.Task, _ *wire.Message) {
			t.Steps[0] = wire.Step{Step: f.last(), Blocks: []int{0}}
		}, "none of an evaluation"},
		"a graph step": {engine.Training, func(f *fixture, t *wire.Task, _ *wire.Message) {
			t.Steps[0].Step = slices.IndexFunc(f.prog.Steps, func(s model.Step) bool { return !s.Kind.Tensor() })
		}, "no tensor step"},
		"a negative block":        {engine.Training, func(_ *fixture, t *wire.Task, _ *wire.Message) { t.Steps[0].Blocks[0] = -1 }, "block -1 of 1"},
		"ships what it has not":   {engine.Training, func(_ *fixture, t *wire.Task, _ *wire.Message) { t.Steps[0].Ships = []int{model.X} }, "no rows of buffer 0"},
		"ships a negative buffer": {engine.Training, func(_ *fixture, t *wire.Task, _ *wire.Message) { t.Steps[0].Ships = []int{-1} }, "no rows of buffer -1"},
		"ships edges":             {engine.Training, func(f *fixture, t *wire.Task, _ *wire.Message) { t.Steps[0].Ships = []int{f.edges()} }, "no rows of buffer"},
		"a negative gradient":     {engine.Training, func(_ *fixture, t *wire.Task, _ *wire.Message) { t.Steps[0].Grads = []int{-1} }, "no gradient of parameter -1"},
		"a gradient in an evaluation": {engine.Evaluation, func(_ *fixture, t *wire.Task, _ *wire.Message) {
			t.Steps[0].Grads = []int{0}
		}, "no gradient of parameter 0"},
		"finds a negative buffer": {engine.Training, func(_ *fixture, t *wire.Task, _ *wire.Message) { t.Steps[0].Found = []wire.Found{{Buf: -1}} }, "no rows of buffer -1"},
		"finds what nobody wrote": {engine.Training, func(f *fixture, t *wire.Task, _ *wire.Message) {
			t.Walk = -1 // as rows that are not set
			t.Steps[0].Found = []wire.Found{{Buf: f.prog.Steps[t.Steps[0].Step].Out[0], Writer: -1}}
		}, "not set by step -1"},
		"no parameters":            {engine.Training, func(_ *fixture, t *wire.Task, _ *wire.Message) { t.Params = nil }, "not among the task's"},
		"brings a negative buffer": {engine.Training, brings(func(*fixture) wire.Found { return wire.Found{Buf: -1} }), "no rows of buffer -1"},
		"brings a foreign buffer":  {engine.Training, brings(func(f *fixture) wire.Found { return wire.Found{Buf: len(f.prog.Bufs)} }), "no rows of buffer"},
		"brings constant rows":     {engine.Training, brings(func(*fixture) wire.Found { return wire.Found{Buf: model.X} }), "no rows of buffer 0"},
		"brings edges":             {engine.Training, brings(func(f *fixture) wire.Found { return wire.Found{Buf: f.edges()} }), "no rows to bring"},
		"brings what is no frame": {engine.Training, brings(func(f *fixture) wire.Found {
			return wire.Found{Buf: f.prog.Steps[0].Out[0]}
		}), "read frame"},
		"brings more than it says": {engine.Training, func(_ *fixture, _ *wire.Task, b *wire.Message) { b.Parts = append(b.Parts, nil) }, "in 1 parts"},
		"another block":            {engine.Training, func(_ *fixture, _ *wire.Task, b *wire.Message) { b.Block.Block = 1 << 40 }, "came instead of"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, c.pass)
			good := newFixture(t, c.pass).tasks[:2]
			c.change(f, f.tasks[0].Task, f.tasks[1])
			f.tasks = append(f.tasks[:2:2], good...)
			got, err := answers(t, device(t), 1<<20, f.messages(t))
			if err != nil || len(got) != 2 {
				t.Fatalf("%d answers, %v, want two", len(got), err)
			}
			if m := got[0].Fail; m == nil || m.Lost || !strings.Contains(m.Text, c.says) {
				t.Errorf("the answer is %+v, want a failure with %q", m, c.says)
			}
			if got[1].Result == nil {
				t.Errorf("then %+v, want a result", got[1].Fail)
			}
		})
	}
}

// last is the last tensor step.
func (f *fixture) last() int {
	i := len(f.prog.Steps) - 1
	for !f.prog.Steps[i].Kind.Tensor() {
		i--
	}
	return i
}

// edges is the buffer of values of sparse features.
func (f *fixture) edges() int {
	return slices.IndexFunc(f.prog.Bufs, func(b model.Buf) bool { return b.Edges })
}

func brings(what func(f *fixture) wire.Found) func(f *fixture, task *wire.Task, block *wire.Message) {
	return func(f *fixture, _ *wire.Task, block *wire.Message) {
		block.Block.Bufs, block.Parts = []wire.Found{what(f)}, [][]byte{nil}
	}
}

// What an op refuses is the failure of a task.
func TestWhatAnOpRefusesIsAFailure(t *testing.T) {
	f := newFixture(t, engine.Training)
	w := New(Config{Device: device(t), Memory: 1 << 20})
	defer w.Close()
	if err := w.begin(f.job.Job); err != nil {
		t.Fatal(err)
	}
	s := &session{w: w}
	op := func(*model.Ctx) { kernels.CheckZero(nil) }
	err := s.runOps(t.Context(), &engine.Work{Ops: []model.Op{op}, Blocks: []*model.Ctx{{}}})
	if err == nil || !strings.Contains(err.Error(), "kernels: Zero: dst is nil") {
		t.Errorf("it ended with %v, want what the op said", err)
	}
}

// A job in the middle of a task ends that: its room is gone.
func TestAJobEndsATask(t *testing.T) {
	f := newFixture(t, engine.Training)
	other := *f.job.Job
	other.Codec = "s2"
	f.tasks = []*wire.Message{f.tasks[0], {Job: &other}, f.tasks[1]}
	if got, err := answers(t, device(t), 1<<20, f.messages(t)); err != nil || len(got) != 0 {
		t.Errorf("%d answers, %v, want none", len(got), err)
	}
}

// FuzzServe sends what it likes behind a job; of models there is the one.
func FuzzServe(f *testing.F) {
	for _, pass := range []engine.Pass{engine.Training, engine.Evaluation} {
		x := newFixture(f, pass)
		for _, msgs := range [][]*wire.Message{x.messages(f)[1:], slices.Concat(chunks(f, x.shard, 12), x.weights, x.tasks[:1], []*wire.Message{cancels(0)}, x.tasks[1:])} {
			b, err := wire.Pack(msgs)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		msgs, err := wire.Unpack(b)
		if err != nil {
			return
		}
		msgs = slices.DeleteFunc(msgs, func(m *wire.Message) bool { return m.Job != nil })
		answers(t, device(t), 1<<20, append([]*wire.Message{newFixture(t, engine.Training).job}, msgs...))
	})
}
