package prepare

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"dorylus/engine/dataset"
	"dorylus/engine/order"
	"dorylus/engine/store"
)

// writeEdgeText writes about size bytes of undirected edges between a million
// vertices in communities of a thousand, whose ids are names (user_123456) or sparse
// numbers of 60 bits, and returns the bytes written.
func writeEdgeText(path string, names bool, size int) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	const n, community = 1_000_000, 1000
	rng := rand.New(rand.NewPCG(1, 2))
	ids := make([]string, n)
	for i := range ids {
		if ids[i] = fmt.Sprintf("user_%d", i); !names {
			ids[i] = strconv.FormatInt(rng.Int64N(1<<60), 10)
		}
	}
	w := bufio.NewWriterSize(f, 1<<20)
	written := 0
	for written < size {
		u, v := rng.IntN(n), rng.IntN(n)
		if rng.IntN(10) < 8 {
			v = u/community*community + rng.IntN(community)
		}
		line, err := fmt.Fprintf(w, "%s,%s\n", ids[u], ids[v])
		if err != nil {
			return 0, err
		}
		written += line
	}
	return int64(written), w.Flush()
}

// BenchmarkText prepares an edge list of text, from the file to the store, and
// reports the bytes of text per second that the processor computes (MB/cpu-s, of
// reading alone and of everything) and the largest resident size. The order is the
// source's: what another costs does not depend on the text. DORYLUS_BENCH_MB sets
// the size of the text (default 16; published numbers: 500).
func BenchmarkText(b *testing.B) {
	mb := 16
	if s := os.Getenv("DORYLUS_BENCH_MB"); s != "" {
		var err error
		if mb, err = strconv.Atoi(s); err != nil {
			b.Fatalf("DORYLUS_BENCH_MB: %v", err)
		}
	}
	for _, kind := range []string{"names", "numbers"} {
		b.Run(fmt.Sprintf("%s/MB=%d", kind, mb), func(b *testing.B) {
			dir := b.TempDir()
			size, err := writeEdgeText(filepath.Join(dir, "edges.csv"), kind == "names", mb*1_000_000)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(size)
			for k := 0; b.Loop(); k++ {
				resetPeak()
				start := cpuSeconds()
				raw, err := dataset.Open(context.Background(), filepath.Join(dir, "edges.csv"), dataset.Options{})
				if err != nil {
					b.Fatal(err)
				}
				read := cpuSeconds() - start
				raw.Findings = dataset.Check(raw)
				checked := cpuSeconds() - start
				s, err := Build(context.Background(), raw, Options{Order: order.Natural, Consume: true})
				if err != nil {
					b.Fatal(err)
				}
				built := cpuSeconds() - start
				if err := store.Write(context.Background(), filepath.Join(dir, fmt.Sprint("store", k)), s, store.WriteOptions{}); err != nil {
					b.Fatal(err)
				}
				all := cpuSeconds() - start
				b.ReportMetric(float64(size)/1e6/read, "read-MB/cpu-s")
				b.ReportMetric(float64(size)/1e6/all, "all-MB/cpu-s")
				b.ReportMetric(read, "s-read")
				b.ReportMetric(checked-read, "s-check")
				b.ReportMetric(built-checked, "s-build")
				b.ReportMetric(all-built, "s-write")
				b.ReportMetric(float64(peakMiB()), "MiB-peak")
			}
		})
	}
}
