package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/kernels"
)

// flaky runs tensor tasks like a fleet of remote workers that loses some of
// them, before the work or with the answer.
type flaky struct {
	engine.Backend
	slots int

	mu   sync.Mutex
	rng  *rand.Rand
	lost int
	of   map[string]int // losses by task: never more than two, or the run would rightly end
}

func (f *flaky) Local() bool { return false }
func (f *flaky) Slots() int  { return f.slots }

func (f *flaky) Run(ctx context.Context, w *engine.Work) error {
	f.mu.Lock()
	x, name := f.rng.IntN(12), fmt.Sprintf("%v %d", w.Task, len(w.Ops))
	if f.of[name] >= 2 {
		x = 11
	}
	if x < 2 {
		f.lost++
		f.of[name]++
	}
	f.mu.Unlock()
	if x == 0 {
		return fmt.Errorf("the worker of %v is gone", w.Task)
	}
	before := snapshot(w)
	err := f.Backend.Run(ctx, w)
	if err == nil && x == 1 {
		restore(w, before)
		return fmt.Errorf("the answer of %v is lost", w.Task)
	}
	return err
}

func snapshot(w *engine.Work) [][]float32 {
	var out [][]float32
	for _, c := range w.Blocks {
		for _, b := range w.Step.Out {
			if m := c.Full[b]; m.Stride > 1 { // not one value per non-zero feature
				out = append(out, slices.Clone(c.Mat(b).Host))
			} else {
				out = append(out, nil)
			}
		}
	}
	return out
}

func restore(w *engine.Work, before [][]float32) {
	i := 0
	for _, c := range w.Blocks {
		for _, b := range w.Step.Out {
			if before[i] != nil {
				copy(c.Mat(b).Host, before[i])
			}
			i++
		}
	}
}

func TestRemoteBackendThatLosesTasksGivesTheSameBits(t *testing.T) {
	want := mustTrain(t, options(t))
	for seed := range uint64(4) {
		var f *flaky
		o := options(t, func(o *Options) {
			local := backend.NewLocal(o.Device)
			t.Cleanup(func() { local.Close() })
			f = &flaky{Backend: local, slots: 1 + int(seed), rng: rand.New(rand.NewPCG(seed, 4)), of: map[string]int{}}
			o.Backend = f
		})
		got := mustTrain(t, o)
		if f.lost == 0 {
			t.Errorf("seed %d: nothing was lost, the test shows nothing", seed)
		}
		if got.WeightsSHA256 != want.WeightsSHA256 {
			t.Errorf("seed %d, %d losses: weights %.12s, want %.12s", seed, f.lost, got.WeightsSHA256, want.WeightsSHA256)
		}
		retried := 0
		for _, e := range events(o).events {
			if _, ok := e.(engine.Retried); ok {
				retried++
			}
		}
		if retried != f.lost {
			t.Errorf("seed %d: %d losses, %d retries reported", seed, f.lost, retried)
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A gather in an async run never sees half of a publication: rows that are
// published whole, all values alike, are read whole.
func TestPublishedRowsAreNotTorn(t *testing.T) {
	o := options(t)
	rows, err := o.Device.Alloc(64, 32)
	check(t, err)
	pub := published{rows: rows, spans: []kernels.Span{{Lo: 0, Hi: 32}, {Lo: 32, Hi: 64}}, latch: make([]latch, 2), ends: []int{2}}
	for i := range pub.latch {
		pub.latch[i].epoch = -1
	}
	var wg sync.WaitGroup
	stream := func() kernels.Stream {
		s, err := o.Device.NewStream()
		check(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	var waited atomic.Int64
	for i := range 2 {
		s := stream()
		wg.Go(func() {
			for e := range 200 {
				later := make(chan error, 1)
				fate, err := pub.write(s, i, publication{epoch: e, made: func(err error) { later <- err }, set: func(kernels.Stream) error {
					dst := pub.rows.Sub(pub.spans[i])
					for r := range dst.Rows {
						for c := range dst.Row(r) {
							dst.Row(r)[c] = float32(e)
						}
					}
					return nil
				}})
				if fate == left {
					waited.Add(1)
					err = <-later
				}
				if fate == dropped || err != nil {
					t.Errorf("rows of epoch %d: fate %d, %v", e, fate, err)
				}
			}
		})
	}
	for range 2 {
		s := stream()
		wg.Go(func() {
			for range 200 {
				pub.read(s, []int32{0, 1}, 200, func() {
					for _, span := range pub.spans {
						first := pub.rows.Row(span.Lo)[0]
						for r := span.Lo; r < span.Hi; r++ {
							for _, x := range pub.rows.Row(r) {
								if x != first {
									t.Errorf("rows [%d,%d) hold both %v and %v", span.Lo, span.Hi, first, x)
									return
								}
							}
						}
					}
				})
			}
		})
	}
	wg.Wait()
	s := stream()
	never := func(kernels.Stream) error { t.Error("a repeat was written"); return nil }
	if fate, _ := pub.write(s, 0, publication{epoch: 200, set: func(kernels.Stream) error { return nil }}); fate != made {
		t.Error("newer rows were not published")
	}
	if fate, _ := pub.write(s, 0, publication{epoch: 200, set: never}); fate != dropped {
		t.Error("a repeat was published")
	}
	// What comes while somebody reads is left, the newest of it is made by the last reader.
	var order []int
	pub.read(s, []int32{0}, 201, func() {
		pub.read(s, []int32{0}, 201, func() {
			for _, e := range []int{201, 203, 202} {
				set := func(kernels.Stream) error { order = append(order, e); return nil }
				fate, _ := pub.write(s, 0, publication{epoch: e, set: set, made: func(error) { order = append(order, -e) }})
				if (fate == left) != (e != 202) {
					t.Errorf("rows of epoch %d that came while others read: fate %d", e, fate)
				}
			}
		})
		if order != nil {
			t.Errorf("%v were made while somebody read", order)
		}
	})
	if !slices.Equal(order, []int{203, -203}) {
		t.Errorf("%v were made, want the newest alone", order)
	}
}

// A task that is lost again and again ends the run with its name, and nothing is
// left running.
func TestBackendThatAlwaysFailsEndsTheRun(t *testing.T) {
	o := options(t, func(o *Options) {
		local := backend.NewLocal(o.Device)
		t.Cleanup(func() { local.Close() })
		o.Backend = dead{local}
	})
	if _, err := Train(context.Background(), o); err == nil || !strings.Contains(err.Error(), "AV1 e0/i") {
		t.Errorf("got %v, want an error that names the task", err)
	}
	if err := o.Device.Close(); err != nil {
		t.Errorf("the failed run left memory behind: %v", err)
	}
}

type dead struct{ engine.Backend }

func (dead) Local() bool                             { return false }
func (dead) Slots() int                              { return 2 }
func (dead) Run(context.Context, *engine.Work) error { return errors.New("no worker answers") }
