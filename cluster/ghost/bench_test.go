package ghost_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dorylus/cluster/clustertest"
	"dorylus/engine"
)

// BenchmarkRows is one server sending rows to another over loopback, all cores for both.
func BenchmarkRows(b *testing.B) {
	for _, tls := range []bool{false, true} {
		for _, rows := range []int{256, 16384} {
			b.Run(fmt.Sprintf("tls=%v/rows=%d", tls, rows), func(b *testing.B) {
				c := clustertest.Start(b, clustertest.Options{Graphs: 2, TLS: tls})
				data := make([]float32, rows*128)
				r := rand.New(rand.NewPCG(1, 1))
				for i := range data {
					data[i] = float32(r.NormFloat64())
				}
				b.SetBytes(int64(4 * len(data)))
				b.ResetTimer()
				go func() {
					for n := range b.N {
						if err := c.Nodes[0].Exchanger().Send(b.Context(), &engine.RowMsg{To: 1, Epoch: n, Cols: 128, Data: data}); err != nil {
							b.Error(err)
						}
					}
				}()
				for range b.N {
					if _, err := c.Nodes[1].Exchanger().Recv(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
