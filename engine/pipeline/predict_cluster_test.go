package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/kernels"
)

// predictJointly runs PredictRows on so many partitions, of which only server 0 has the
// model; each is changed by set.
func predictJointly(ctx context.Context, o PredictOptions, parts int, to Outputs, set func(rank int, o *PredictOptions)) []error {
	net, h := newMesh(parts, uint64(parts)), newHall(parts)
	ctx, end := context.WithCancel(ctx)
	defer end()
	var lost sync.Once
	var wg sync.WaitGroup
	errs := make([]error, parts)
	for rank := range parts {
		one, out := o, Outputs{}
		one.Threads = 1 + rank%2
		one.Cluster = &Cluster{Group: seat{h, rank}, Exchange: port{net, rank}, Blocks: graph.Partition(o.Store, nil, parts)}
		if rank == 0 {
			out = to
		} else {
			one.Model, one.Weights = o.Model, nil
			one.Model.Model, one.Model.Layers = "", 0
		}
		if set != nil {
			set(rank, &one)
		}
		wg.Go(func() {
			if errs[rank] = PredictRows(ctx, one, out); errs[rank] != nil {
				lost.Do(func() { close(h.lost); end() }) // the others would hear of it
			}
		})
	}
	wg.Wait()
	return errs
}

// trained are the options to predict with what a short run has made.
func trained(t *testing.T, set func(*engine.Config)) PredictOptions {
	t.Helper()
	o := options(t, func(o *Options) {
		o.Config.Epochs = 3
		set(&o.Config)
	})
	res := mustTrain(t, o)
	return PredictOptions{Model: res.State.Model, Weights: res.State.BestWeights(false), Store: o.Store, Device: o.Device, Threads: 2}
}

func model3(name string, more func(*engine.Config)) func(*engine.Config) {
	return func(c *engine.Config) {
		*c = engine.DefaultConfig(name)
		c.Epochs, c.Threads = 3, 2
		if more != nil {
			more(c)
		}
	}
}

// Partitions give the bits of one process, in pieces that are no larger than was asked
// for, each vertex once.
func TestPartitionsPredictTheSameBits(t *testing.T) {
	for name, set := range map[string]func(*engine.Config){
		"gcn":      model3("gcn", nil),
		"gcn 3":    model3("gcn", func(c *engine.Config) { c.Layers, c.Hidden, c.Norm, c.JumpingKnowledge = 3, 8, "batch", true }),
		"gat":      model3("gat", func(c *engine.Config) { c.Hidden = 4 }),
		"sage":     model3("sage", func(c *engine.Config) { c.Hidden = 8 }),
		"sage max": model3("sage", func(c *engine.Config) { c.Hidden, c.Aggregator = 8, "max" }),
		"sgc":      model3("sgc", nil),
		"appnp":    model3("appnp", func(c *engine.Config) { c.Hidden = 8 }),
	} {
		t.Run(name, func(t *testing.T) {
			o := trained(t, set)
			logits, err := Predict(context.Background(), o)
			check(t, err)
			embedding, err := Embed(context.Background(), o)
			check(t, err)
			counts, chunks := []int{1, 2, 3, 25}, []int{0, 1 << 18}
			if testing.Short() {
				counts, chunks = counts[2:3], chunks[1:]
			}
			for _, parts := range counts {
				for _, chunk := range chunks {
					o.Chunk = chunk
					var got, hid *kernels.Mat
					count := &counted{to: o.whole(&got), seen: make([]int, o.Store.Meta.Vertices)}
					for rank, err := range predictJointly(context.Background(), o, parts, Outputs{count.rows, o.whole(&hid)}, nil) {
						if err != nil {
							t.Fatalf("%d partitions, server %d: %v", parts, rank, err)
						}
					}
					what := fmt.Sprintf("%d partitions, pieces of %d bytes", parts, chunk)
					sameMat(t, what+", logits", logits, got)
					sameMat(t, what+", embedding", embedding, hid)
					count.check(t, what, chunk/2/parts)
				}
			}
			var alone *kernels.Mat
			for _, err := range predictJointly(context.Background(), o, 2, Outputs{Embedding: o.whole(&alone)}, nil) {
				check(t, err)
			}
			sameMat(t, "embedding without logits", embedding, alone)
		})
	}
}

// counted counts how often each vertex comes, and the largest piece.
type counted struct {
	to   func(Rows) error
	seen []int
	most int // bytes
}

func (c *counted) rows(r Rows) error {
	for _, v := range r.Vertices {
		c.seen[v]++
	}
	c.most = max(c.most, 4*r.Values.Rows*r.Values.Cols)
	return c.to(r)
}

func (c *counted) check(t *testing.T, what string, most int) {
	t.Helper()
	for v, n := range c.seen {
		if n != 1 {
			t.Fatalf("%s: vertex %d came %d times", what, v, n)
		}
	}
	if most > 0 && c.most > most {
		t.Errorf("%s: a piece has %d bytes, at most %d were asked for", what, c.most, most)
	}
}

func sameMat(t *testing.T, what string, want, got *kernels.Mat) {
	t.Helper()
	if got == nil || got.Rows != want.Rows || got.Cols != want.Cols {
		t.Fatalf("%s: %v instead of %d x %d", what, got, want.Rows, want.Cols)
	}
	for v := range want.Rows {
		for i, x := range want.Row(v) {
			if y := got.Row(v)[i]; math.Float32bits(x) != math.Float32bits(y) {
				t.Fatalf("%s: vertex %d, value %d: %v, want %v", what, v, i, y, x)
			}
		}
	}
}

// What goes wrong at one server ends all, and says what and where.
func TestPredictJointlyFails(t *testing.T) {
	o := trained(t, model3("gcn", nil))
	other := *o.Store
	other.Order = append([]int32{}, o.Store.Order...)
	other.Order[0], other.Order[1] = other.Order[1], other.Order[0]
	full := errors.New("no space left on device")
	var all *kernels.Mat
	for what, tc := range map[string]struct {
		to   func(Rows) error
		set  func(int, *PredictOptions)
		want string
	}{
		"another store": {o.whole(&all), func(rank int, o *PredictOptions) {
			if rank == 1 {
				o.Store = &other
			}
		}, "has another contents of the data than server"},
		"another model": {o.whole(&all), func(rank int, o *PredictOptions) { o.Weights = o.Weights[:0] }, "0 weights were given for 4 parameters"},
		"a full disk":   {func(Rows) error { return full }, nil, full.Error()},
	} {
		found := false
		errs := predictJointly(context.Background(), o, 3, Outputs{Logits: tc.to}, tc.set)
		for rank, err := range errs {
			if err == nil && rank == 0 {
				t.Errorf("%s: server %d ended well", what, rank)
			}
			found = found || err != nil && strings.Contains(err.Error(), tc.want)
		}
		if !found {
			t.Errorf("%s: %v, want %q", what, errs, tc.want)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if errs := predictJointly(ctx, o, 2, Outputs{Logits: o.whole(&all)}, nil); errs[0] == nil || errs[1] == nil || !errors.Is(errors.Join(errs...), context.Canceled) {
		t.Errorf("stopped: %v", errs)
	}
}

// A message of training, which no server of a prediction sends, is refused.
func TestPredictRefusesTraining(t *testing.T) {
	o := trained(t, model3("gcn", nil))
	var all *kernels.Mat
	errs := predictJointly(context.Background(), o, 2, Outputs{Logits: o.whole(&all)}, func(rank int, o *PredictOptions) {
		if rank == 0 {
			check(t, o.Cluster.Exchange.Send(context.Background(), &engine.RowMsg{From: 0, To: 1, Pass: engine.Training, Cols: 1, Data: []float32{1}}))
		}
	})
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "nothing is trained here") {
		t.Errorf("server 1: %v", errs[1])
	}
}
