package params

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/optim"
	"dorylus/engine/task"
	"dorylus/engine/testkit"
	"dorylus/engine/testkit/opaque"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// Three devices whose memory is their own make the bits of one server, clipped too, and
// each gets a version once: the first without the host, the others by it.
func TestSharedGivesEachDeviceEachVersionOnce(t *testing.T) {
	testkit.Leaks(t)
	const blocks, epochs = 11, 4
	cuts := []int{0, 3, 3, blocks} // the second has none
	for _, clip := range []float64{0, 0.25} {
		want := open(t, Config{Blocks: blocks, Optim: optim.Config{ClipNorm: clip}})
		for epoch := range epochs {
			whole(t, want, epoch)
		}
		sh := NewShared(3)
		devs, seats, errs := make([]*opaque.Device, 3), make([]*Seat, 3), make([]error, 3)
		var wg sync.WaitGroup
		for rank := range 3 {
			host, err := ref.Open()
			if err != nil {
				t.Fatal(err)
			}
			devs[rank] = opaque.New(host)
			cfg := Config{Specs: small, Optim: want.cfg.Optim, Blocks: blocks, Intervals: blocks, Device: devs[rank]}
			if rank == 0 {
				cfg.Init = want.cfg.Init
			}
			own := kernels.Span{Lo: cuts[rank], Hi: cuts[rank+1]}
			wg.Go(func() { seats[rank], errs[rank] = sh.Join(t.Context(), rank, cfg, own, task.Range(own)) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		size := int64(0)
		for _, s := range small {
			size += 4 * int64(s.Rows) * int64(s.Cols)
		}
		for epoch := range epochs {
			before := []map[string]int64{devs[0].Moved(), devs[1].Moved(), devs[2].Moved()}
			for rank, seat := range seats {
				for b := cuts[rank]; b < cuts[rank+1]; b++ {
					if err := seat.Push(t.Context(), deviceGradients(t, devs[rank], seat, epoch, b)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for rank, seat := range seats {
				if u := <-seat.Updates(); u.Version != epoch+1 {
					t.Fatalf("device %d: version %d, want %d", rank, u.Version, epoch+1)
				}
				put := devs[rank].Moved()["put"] - before[rank]["put"] - made(epoch, cuts[rank], cuts[rank+1])
				if rank > 0 && put != size {
					t.Errorf("epoch %d: %d bytes of weights came to device %d, want %d", epoch, put, rank, size)
				}
			}
		}
		got, err := seats[0].Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if a, b := bits(got), bits(snapshot(t, want)); a != b {
			t.Errorf("clipped to %v:\n got %s\nwant %s", clip, a, b)
		}
		for rank, seat := range seats {
			w, err := seat.Fetch(t.Context(), -1, epochs-1)
			if err == nil {
				var host []*kernels.Mat
				host, err = seat.Copy(w)
				if a, b := bits(&State{Version: got.Version, Weights: host, Optim: got.Optim}), bits(got); a != b {
					t.Errorf("device %d has\n     %s\nwant %s", rank, a, b)
				}
			}
			if err != nil {
				t.Error(err)
			}
			seat.Close()
		}
		if err := sh.Close(); err != nil {
			t.Error(err)
		}
		for rank, d := range devs {
			if err := d.Close(); err != nil {
				t.Errorf("device %d: %v", rank, err)
			}
		}
	}
}

// deviceGradients is what a block pushes, made on the seat's device.
func deviceGradients(t *testing.T, dev kernels.Device, seat *Seat, epoch, block int) *engine.Push {
	t.Helper()
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := &engine.Push{ID: task.ID{Interval: block, Epoch: epoch}, Losses: []engine.BlockLoss{{Block: block, Loss: lossOf(epoch, block)}}}
	for k, spec := range small {
		var m *kernels.Mat
		if !addsNothing(epoch, k, block) {
			m = seat.Buffer(k)
			host := kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols))
			gradient(host, epoch, k, block)
			s.Put(m, host.Host)
		}
		p.Grads = append(p.Grads, engine.BlockGrad{Param: k, Block: block, G: m})
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	return p
}

// made are the bytes that deviceGradients itself has put.
func made(epoch, lo, hi int) (n int64) {
	for b := lo; b < hi; b++ {
		for k, spec := range small {
			if !addsNothing(epoch, k, b) {
				n += 4 * int64(spec.Rows) * int64(spec.Cols)
			}
		}
	}
	return n
}

// Whoever waits for others to join hears why they do not.
func TestSharedFailsForAll(t *testing.T) {
	testkit.Leaks(t)
	join := func(sh *Shared, ctx context.Context, rank int) error {
		dev, err := ref.Open()
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Specs: small, Blocks: 2, Intervals: 2, Device: dev, Init: InitParams(small, 1)}
		seat, err := sh.Join(ctx, rank, cfg, kernels.Span{Lo: rank, Hi: rank + 1}, task.Range{Lo: rank, Hi: rank + 1})
		if seat != nil {
			seat.Close()
		}
		return err
	}
	for rank := range 2 {
		sh := NewShared(2)
		why := errors.New("gpu:1: no memory")
		var wg sync.WaitGroup
		var err error
		wg.Go(func() { err = join(sh, t.Context(), rank) })
		sh.Fail(why)
		wg.Wait()
		if !errors.Is(err, why) {
			t.Errorf("%d: %v", rank, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := join(NewShared(2), ctx, 1); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for the other") {
			t.Errorf("%v", err)
		}
		if err := sh.Close(); err != nil {
			t.Error(err)
		}
	}
}
