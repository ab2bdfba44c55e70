package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dorylus/engine"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
	"dorylus/kernels"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// underFaults trains on workers whose streams and launches go wrong by seed, in virtual
// time.
func underFaults(t *testing.T, st *store.Store, dev kernels.Device, seed uint64, set func(c *engine.Config), see func(*diary)) (res *pipeline.Result, s Stats, what string) {
	r := rand.New(rand.NewPCG(seed, 1))
	fs := draw(r)
	workers, memory := 1+r.IntN(3), int64(1<<30)
	if r.IntN(4) == 0 {
		memory = 12000 // room for one shard, hardly for two
	}
	what = fmt.Sprintf("seed %d, %d workers, %v", seed, workers, fs)
	synctest.Test(t, func(t *testing.T) {
		p := &inProcess{dev: dev, memory: memory}
		p.arrive = func(ctx context.Context, in worker.Invitation) error {
			r := rand.New(rand.NewPCG(seed, 1000+uint64(in.Worker)))
			switch {
			case r.Float64() < fs.launch:
				return errors.New("the service is busy")
			case r.Float64() < fs.absent:
				<-ctx.Done()
				return ctx.Err()
			}
			wait(time.Duration(r.IntN(200))*time.Millisecond, ctx.Done())
			return nil
		}
		p.wrap = func(in worker.Invitation, c *wire.PipeConn) conn { return newShaky(c, fs, seed, in.Worker) }
		f := p.start(t, Options{Workers: workers, Codec: "none", Patience: time.Second, Floor: 100 * time.Millisecond, GiveUp: 3 * time.Second})
		if r.IntN(2) == 0 {
			f.frameBytes, f.chunkBytes = 1+r.IntN(50), 1+r.IntN(500)
		}
		watch := time.AfterFunc(time.Hour, func() { panic(what + ": it has not ended within an hour of virtual time") })
		defer watch.Stop()
		o := options(t, st, dev, set)
		res = train(t, o, f)
		s = f.Stats()
		see(o.Listener.(*diary))
	})
	return res, s, what
}

var schedules = flag.Int("schedules", 500, "fault schedules to try; thousands take some 10 ms each")

func TestAnyFaultsGiveTheSameBits(t *testing.T) {
	dev := device(t)
	graphs := []*store.Store{tiny(t), tiny(t)}
	graphs[1].Meta.BlockRows = 4 // six blocks: intervals have sums of sums to give
	schedules := *schedules
	if testing.Short() {
		schedules /= 5
	}
	models := []string{"gcn", "gat"}
	set := func(model string, intervals int) func(c *engine.Config) {
		return func(c *engine.Config) {
			*c = engine.DefaultConfig(model)
			c.Intervals = intervals
			c.Epochs, c.Hidden, c.Heads, c.EvalEvery, c.Threads = 2, 2, 1, 0, 1
		}
	}
	var want [2][]*pipeline.Result
	for i, st := range graphs {
		for _, m := range models {
			want[i] = append(want[i], train(t, options(t, st, dev, set(m, 1)), nil))
		}
	}
	var sum Stats
	var mu sync.Mutex
	start := time.Now()
	t.Run("all", func(t *testing.T) {
		cores := runtime.GOMAXPROCS(0)
		for part := range cores {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := part; seed < schedules && !t.Failed(); seed += cores {
					k, i, intervals := seed/8%len(models), seed/16%2, 1+seed/32%3 // on any number of cores
					got, s, what := underFaults(t, graphs[i], dev, uint64(seed), set(models[k], intervals), func(*diary) {})
					sameBits(t, fmt.Sprintf("%s, %d intervals, %s", models[k], intervals, what), want[i][k], got)
					mu.Lock()
					sum.add(s)
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d schedules in %v: %+v", schedules, time.Since(start), sum)
	if sum.Retries == 0 || sum.Hedges == 0 || sum.Late == 0 || sum.Own == 0 || sum.Off == 0 || sum.Replayed == 0 {
		t.Errorf("the schedules show nothing of some kind: %+v", sum)
	}
}

func (s *Stats) add(x Stats) {
	s.Tasks += x.Tasks
	s.Retries += x.Retries
	s.Hedges += x.Hedges
	s.Late += x.Late
	s.Own += x.Own
	s.Off += x.Off
	s.Shards += x.Shards
	s.Replayed += x.Replayed
	s.SentBytes += x.SentBytes
	s.ReceivedBytes += x.ReceivedBytes
	s.ShardBytes += x.ShardBytes
	s.WeightBytes += x.WeightBytes
	s.Workers += x.Workers
}
