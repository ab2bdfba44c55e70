package worker

import (
	"slices"
	"testing"

	"dorylus/engine"
	"dorylus/lambda/wire"
)

func cancels(id int64) *wire.Message { return &wire.Message{Cancel: &wire.Cancel{ID: id}} }

// off says that m is the answer to a Cancel.
func off(m *wire.Message, id int64) bool {
	return m.Fail != nil && m.Fail.ID == id && m.Fail.Off && !m.Fail.Lost
}

// A task that is called off is not computed, however far it has come, and the next one is.
func TestATaskIsCalledOff(t *testing.T) {
	f := newFixture(t, engine.Training)
	task, block := f.tasks[0], f.tasks[1]
	next := []*wire.Message{f.tasks[2], f.tasks[3]}
	id := task.Task.ID
	for name, c := range map[string]struct {
		in      []*wire.Message
		results int // of the task that is called off, at most: it may cross what calls it off
	}{
		"before it begins":   {[]*wire.Message{cancels(id), task, block}, 1},
		"once it has begun":  {[]*wire.Message{task, cancels(id), block}, 0},
		"behind its end":     {[]*wire.Message{task, block, cancels(id)}, 1},
		"another one":        {[]*wire.Message{task, cancels(id + 77), block}, 1},
		"twice":              {[]*wire.Message{task, cancels(id), cancels(id), block}, 0},
		"and the next began": {[]*wire.Message{task, f.tasks[2], cancels(id), f.tasks[3]}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			want := 0
			for _, m := range c.in {
				if m.Cancel != nil {
					want++
				}
			}
			in := slices.Concat(f.messages(t)[:2], f.weights, c.in, next)
			got, err := answers(t, device(t), 1<<20, in)
			if err != nil {
				t.Fatal(err)
			}
			offs, results, others := 0, 0, 0
			for _, m := range got {
				switch {
				case m.Fail != nil && (off(m, id) || off(m, id+77)):
					offs++
				case m.Result != nil && m.Result.ID == id:
					results++
				case m.Result != nil && m.Result.ID == next[0].Task.ID:
					others++
				default:
					t.Errorf("the answer %+v %+v", m.Fail, m.Result)
				}
			}
			if offs != want || results > c.results || others == 0 {
				t.Errorf("%d answers to what calls off, %d results of it, %d of the next; want %d, at most %d, some", offs, results, others, want, c.results)
			}
		})
	}
}

// What calls a task off is seen while a block is computed: the blocks that have come behind
// it are not.
func TestBlocksThatHaveComeAreNotComputed(t *testing.T) {
	f := newFixture(t, engine.Training)
	w := New(Config{Device: device(t), Memory: 1 << 20})
	defer w.Close()
	conn := &script{in: slices.Concat(f.messages(t)[:2], f.weights, []*wire.Message{f.tasks[0], f.tasks[1], cancels(f.tasks[0].Task.ID)})}
	s := &session{w: w, conn: conn, inbox: make(chan received, aheadMessages), taken: make(chan struct{}, 1)}
	s.off.Store(-1)
	s.listen(t.Context()) // all of it is read ahead
	if got := s.off.Load(); got != f.tasks[0].Task.ID {
		t.Fatalf("the attempt that is off is %d", got)
	}
	if _, err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(conn.out) != 1 || !off(conn.out[0], f.tasks[0].Task.ID) {
		t.Errorf("the answers are %+v, want one that it is off", conn.out)
	}
}

// A shard that is given up half-way leaves room for another.
func TestAShardIsCalledOff(t *testing.T) {
	f := newFixture(t, engine.Training)
	half := chunks(t, f.shard, 12)[:4]
	in := slices.Concat([]*wire.Message{f.job}, half, []*wire.Message{cancels(99)}, f.messages(t)[1:])
	got, err := answers(t, device(t), 1<<20, in)
	if err != nil || 2*(len(got)-1) != len(f.tasks) || !off(got[0], 99) {
		t.Errorf("%d answers, %v, want one that it is off, and %d", len(got), err, len(f.tasks)/2)
	}
}
