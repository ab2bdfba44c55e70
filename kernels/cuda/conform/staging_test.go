//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/cuda/internal/watch"
)

// model is matrices on a device and what they should hold.
type model struct {
	*bench
	rng   *rand.Rand
	mats  []*kernels.Mat
	holds [][]float32
	next  float32
}

// numbers are n values that occur nowhere else.
func (m *model) numbers(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		m.next++
		v[i] = m.next
	}
	return v
}

func (m *model) pick() (*kernels.Mat, []float32) {
	i := m.rng.IntN(len(m.mats))
	return m.mats[i], m.holds[i]
}

// TestEmulatedStaging queues moves of all kinds through chunks of 512 bytes, so that
// every one is used again and again within a queue: rows longer than a chunk, lists that
// are brought for one op, results for the host.
func TestEmulatedStaging(t *testing.T) {
	watch.Chunk = 512
	defer func() { watch.Chunk = 0 }()
	for seed := range uint64(6) {
		emu, lib := emulated(t, fmt.Sprintf("seed=%d;early=%d", seed, seed%3*30))
		m := &model{bench: open(t, cuda.Options{Driver: lib}), rng: rand.New(rand.NewPCG(seed, 7))}
		for _, size := range [][2]int{{30, 1}, {30, 7}, {30, 41}, {30, 200}} {
			rows, cols := size[0], size[1]
			for range 2 {
				v := m.numbers(rows * cols)
				m.mats, m.holds = append(m.mats, m.put(rows, cols, v)), append(m.holds, append([]float32(nil), v...))
			}
		}
		for round := range 4 {
			var checks []func() error
			gets := func(step int, what string, got, want []float32) {
				want = append([]float32(nil), want...)
				checks = append(checks, func() error {
					for i := range want {
						if got[i] != want[i] {
							return fmt.Errorf("seed %d, round %d, step %d: %s: value %d is %v, want %v", seed, round, step, what, i, got[i], want[i])
						}
					}
					return nil
				})
			}
			for step := range 40 {
				dst, hold := m.pick()
				cols := dst.Cols
				switch m.rng.IntN(6) {
				case 0:
					v := m.numbers(len(hold))
					m.s.Put(dst, v)
					copy(hold, v)
				case 1:
					got := make([]float32, len(hold))
					m.s.Get(got, dst)
					gets(step, fmt.Sprintf("Get of %d x %d", dst.Rows, cols), got, hold)
				case 2: // rows of the host's, and a list
					host := kernels.FromSlice(50, cols, m.numbers(50*cols))
					ids := make([]int32, dst.Rows)
					for i := range ids {
						ids[i] = int32(m.rng.IntN(50))
						copy(hold[i*cols:(i+1)*cols], host.Row(int(ids[i])))
					}
					m.s.GatherRows(dst, host, ids)
				case 3: // rows of the device's; the list is brought
					src, from := m.pick()
					if src == dst || src.Cols != cols {
						continue
					}
					ids := make([]int32, dst.Rows)
					for i, p := range m.rng.Perm(src.Rows) {
						ids[i] = int32(p)
						copy(hold[i*cols:(i+1)*cols], from[p*cols:(p+1)*cols])
					}
					m.s.GatherRows(dst, src, ids)
				case 4:
					span := kernels.Span{Lo: m.rng.IntN(10), Hi: 10 + m.rng.IntN(20)}
					v := kernels.FromSlice(span.Len(), cols, m.numbers(span.Len()*cols))
					m.s.Copy(dst.Sub(span), v)
					copy(hold[span.Lo*cols:], v.Host)
				case 5:
					host := kernels.FromSlice(dst.Rows, cols, make([]float32, len(hold)))
					m.s.Copy(host, dst)
					gets(step, fmt.Sprintf("Copy of %d x %d to the host", dst.Rows, cols), host.Host, hold)
				}
			}
			m.wait()
			for _, check := range checks {
				if err := check(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, x := range m.mats {
			got := m.get(x)
			for j, w := range m.holds[i] {
				if got[j] != w {
					t.Fatalf("seed %d: at the end value %d of matrix %d is %v, want %v", seed, j, i, got[j], w)
				}
			}
			m.d.Free(x)
		}
		m.close()
		if n := emu.Counter("pageable_copies"); n != 0 {
			t.Errorf("seed %d: %d copies from memory that is not pinned", seed, n)
		}
		if err := leaked(emu); err != nil {
			t.Error(err)
		}
	}
}
