package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/kernels/ref"
	"dorylus/lambda/shard"
	"dorylus/lambda/wire"
)

var config = model.Config{Model: "gcn", Layers: 1, Hidden: 2, Features: 2, Classes: 2}

// visit is one worker that has been greeted and given a job.
type visit struct {
	t    *testing.T
	prog *model.Program
	here *wire.PipeConn
	end  chan error
}

// device is the reference, which says at the end what has not been given back.
func device(t *testing.T) kernels.Device {
	t.Helper()
	dev, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

func begin(t *testing.T, ctx context.Context) *visit {
	t.Helper()
	prog, err := config.Build()
	if err != nil {
		t.Fatal(err)
	}
	here, there := wire.Pipe()
	v := &visit{t: t, prog: prog, here: here, end: make(chan error, 1)}
	w := New(Config{Device: device(t), Memory: 1 << 20})
	go func() {
		_, err := w.Serve(ctx, there, Invitation{Worker: 5, Token: "secret"})
		there.Close()
		w.Close()
		v.end <- err
	}()
	if m := v.hear(); m.Hello == nil || m.Hello.Worker != 5 || m.Hello.Token != "secret" || m.Hello.Version != wire.Version {
		t.Fatalf("hello is %+v", m)
	}
	v.say(&wire.Message{Job: &wire.Job{Model: config, Steps: len(prog.Steps), Precision: "fp32", Codec: "none"}})
	return v
}

func (v *visit) hear() *wire.Message {
	v.t.Helper()
	m, err := v.here.Recv()
	if err != nil {
		v.t.Fatal(err)
	}
	return m
}

func (v *visit) say(m *wire.Message) {
	v.t.Helper()
	if err := v.here.Send(m); err != nil {
		v.t.Fatal(err)
	}
}

// shard brings an interval of one block of three rows.
func (v *visit) shard() {
	v.t.Helper()
	x := kernels.FromSlice(3, 2, []float32{1, 2, 3, 4, 5, 6})
	full := make([]*kernels.Mat, len(v.prog.Bufs))
	for b := range full {
		full[b] = kernels.FromSlice(3, v.prog.Bufs[b].Cols, make([]float32, 3*v.prog.Bufs[b].Cols))
		if v.prog.Bufs[b].Const && v.prog.Bufs[b].Cols == 2 {
			full[b] = x
		}
	}
	rows := kernels.Span{Hi: 3}
	c := &model.Ctx{Full: full, Rows: []kernels.Span{rows, rows, {Hi: 1}}, IDs: [][]int32{{0, 1, 2}, {0, 1, 2}}, Self: [][]int32{nil}, Seen: [][]int32{nil, nil},
		Labels: []int32{0, 1, -1}, LossScale: 0.5, Train: true}
	v.say(whole(v.t, shard.Cut(v.prog, engine.Training, 0, []*model.Ctx{c})))
}

// task is a task of the program's first tensor step that is well formed but for change.
func (v *visit) task(change func(t *wire.Task)) {
	first := 0
	for !v.prog.Steps[first].Kind.Tensor() {
		first++
	}
	t := &wire.Task{ID: 9, Walk: 1, Steps: []wire.Step{{Step: first, Blocks: []int{0}}}}
	change(t)
	v.say(&wire.Message{Task: t})
}

func TestTasksThatMakeNoSenseAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *wire.Task)
		says   string
		lost   bool
	}{
		"no shard":     {func(t *wire.Task) { t.Interval = 4 }, "interval 4", true},
		"weights":      {func(t *wire.Task) { t.Params = []wire.Weight{{Param: 0, Hash: 1}} }, "parameter 0 is not here", true},
		"parameter":    {func(t *wire.Task) { t.Params = []wire.Weight{{Param: -1}} }, "parameter -1", false},
		"no weights":   {func(t *wire.Task) {}, "reads parameter 0", false},
		"no steps":     {func(t *wire.Task) { t.Steps = nil }, "no steps", false},
		"step":         {func(t *wire.Task) { t.Steps[0].Step = 99 }, "step 99", false},
		"block":        {func(t *wire.Task) { t.Steps[0].Blocks = []int{1} }, "block 1 of 1", false},
		"ships":        {func(t *wire.Task) { t.Steps[0].Ships = []int{99} }, "no rows of buffer 99", false},
		"found":        {func(t *wire.Task) { t.Steps[0].Found = []wire.Found{{Buf: -1}} }, "no rows of buffer -1", false},
		"no such pass": {func(t *wire.Task) { t.Pass = 77 }, "not here", true},
	} {
		t.Run(name, func(t *testing.T) {
			v := begin(t, context.Background())
			v.shard()
			v.task(c.change)
			m := v.hear()
			if m.Fail == nil || m.Fail.ID != 9 || m.Fail.Lost != c.lost || !strings.Contains(m.Fail.Text, c.says) {
				t.Errorf("the answer is %+v, want a failure with %q, lost %v", m.Fail, c.says, c.lost)
			}
			v.say(&wire.Message{Stop: &wire.Stop{Why: "over"}}) // it is still there
			if m := v.hear(); m.Bye == nil || m.Bye.Why != "over" {
				t.Errorf("then %+v, want goodbye", m)
			}
			if err := <-v.end; err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestStreamsThatMakeNoSenseEnd(t *testing.T) {
	for name, c := range map[string]struct {
		m    *wire.Message
		says string
	}{
		"empty":          {&wire.Message{}, "does not know"},
		"another job":    {&wire.Message{Job: &wire.Job{Model: config, Steps: 99, Precision: "fp32", Codec: "none"}}, "99 at the graph server"},
		"no such model":  {&wire.Message{Job: &wire.Job{Precision: "fp32", Codec: "none"}}, "unknown"},
		"no such codec":  {&wire.Message{Job: &wire.Job{Model: config, Steps: len(must(config.Build()).Steps), Precision: "fp32", Codec: "rot13"}}, "rot13"},
		"a broken shard": {&wire.Message{Shard: &wire.Shard{Head: []byte("{}")}}, "no blocks"},
		"a weight":       {&wire.Message{Weight: &wire.Weight{Param: 7}}, "parameter 7"},
	} {
		t.Run(name, func(t *testing.T) {
			v := begin(t, context.Background())
			v.say(c.m)
			if m := v.hear(); m.Bye == nil || !strings.Contains(m.Bye.Why, c.says) {
				t.Errorf("the answer is %+v, want goodbye with %q", m.Bye, c.says)
			}
			if err := <-v.end; err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it ended with %v, want %q", err, c.says)
			}
		})
	}
}

func must(p *model.Program, err error) *model.Program {
	if err != nil {
		panic(err)
	}
	return p
}

func TestAWorkerLeavesBeforeItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		v := begin(t, ctx)
		if m := v.hear(); m.Bye == nil || m.Bye.Why != "the deadline is near" {
			t.Errorf("it says %+v", m)
		}
		if err, took := <-v.end, time.Since(start); err != nil || took != 58*time.Second {
			t.Errorf("it left after %v with %v, want 58s", took, err)
		}
	})
}

func TestOneInvocationAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Config{Device: device(t), Memory: 1})
		w.busy <- struct{}{}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, there := wire.Pipe()
		if _, err := w.Serve(ctx, there, Invitation{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second invocation ended with %v", err)
		}
	})
}

// slow is a stream that needs its time to end.
type slow struct {
	*wire.PipeConn
	ended bool
}

func (s *slow) Recv() (*wire.Message, error) {
	m, err := s.PipeConn.Recv()
	if err != nil {
		<-time.After(time.Second)
		s.ended = true
	}
	return m, err
}

func TestServeWaitsForItsListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := wire.Pipe()
		s := &slow{PipeConn: there}
		if err := here.Send(&wire.Message{Stop: &wire.Stop{Why: "over"}}); err != nil {
			t.Fatal(err)
		}
		if bye, err := New(Config{Device: device(t)}).Serve(t.Context(), s, Invitation{}); err != nil || bye.Why != "over" {
			t.Errorf("it ended with %+v, %v", bye, err)
		}
		if !s.ended {
			t.Error("it left while its listener was in the stream")
		}
		for _, want := range []string{"hello", "bye"} {
			if m, err := here.Recv(); err != nil || (m.Hello != nil) != (want == "hello") || (m.Bye != nil) != (want == "bye") {
				t.Errorf("%+v, %v arrived, want the %s", m, err, want)
			}
		}
	})
}
