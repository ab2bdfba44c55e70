package prepare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"dorylus/engine/dataset"
	"dorylus/engine/order"
	"dorylus/kernels"
)

// community is a graph of n vertices, shuffled, in k communities: records
// undirected edges, of which 0.8 stay inside one.
func community(n, k, records, features int) *dataset.Raw {
	rng := rand.New(rand.NewPCG(1, 2))
	name := rng.Perm(n)
	raw := &dataset.Raw{Name: "community", Format: "test", N: n, Undirected: true,
		Src: make([]int32, records), Dst: make([]int32, records)}
	size := n / k
	for i := range records {
		u := rng.IntN(n)
		v := rng.IntN(n)
		if rng.IntN(10) < 8 {
			v = min(u/size*size+rng.IntN(size), n-1)
		}
		raw.Src[i], raw.Dst[i] = int32(name[u]), int32(name[v])
	}
	if features > 0 {
		raw.Dense = kernels.FromSlice(n, features, make([]float32, n*features))
		for i := range raw.Dense.Host {
			raw.Dense.Host[i] = float32(i & 7)
		}
	}
	return raw
}

// peakMiB is the largest resident size of this process so far; 0 where the
// system does not tell.
func peakMiB() int {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.Fields(kib)[0])
			return n >> 10
		}
	}
	return 0
}

// resetPeak makes peakMiB count from now.
func resetPeak() { os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// BenchmarkBuild prepares community graphs and reports seconds by stage and
// bytes a directed edge at the peak. DORYLUS_BENCH_EDGES sets the number of
// directed edges, in millions (default 2; Reddit-sized: 57 or 114).
func BenchmarkBuild(b *testing.B) {
	millions := 2
	if s := os.Getenv("DORYLUS_BENCH_EDGES"); s != "" {
		var err error
		if millions, err = strconv.Atoi(s); err != nil {
			b.Fatalf("DORYLUS_BENCH_EDGES: %v", err)
		}
	}
	n := 233_000
	if millions < 20 {
		n = 20_000
	}
	for _, method := range []string{order.Natural, order.LPA, order.Stream} {
		b.Run(fmt.Sprintf("%s/edges=%dM", method, millions), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				raw := community(n, 50, millions*500_000, 0)
				resetPeak()
				before := peakMiB()
				b.StartTimer()
				var stage string
				since := time.Now()
				s, err := Build(context.Background(), raw, Options{Order: method, Consume: true, Progress: func(next string, _, _ int64) {
					if next != stage {
						if stage != "" {
							b.ReportMetric(time.Since(since).Seconds(), "s-"+stage)
						}
						stage, since = next, time.Now()
					}
				}})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(before), "MiB-raw")
				b.ReportMetric(float64(peakMiB()), "MiB-peak")
				b.ReportMetric(float64(peakMiB())*(1<<20)/float64(s.Meta.Edges), "B/edge")
				b.ReportMetric(s.Meta.Order.IntraFraction, "intra")
			}
		})
	}
}
