package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"dorylus/engine/graph"
	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
	"dorylus/kernels/devices"
)

// The virtual store: more than 2^31 edges and more than 2^31 feature values in files
// that are holes but for the rows near both ends. Each row has hugeDegree edges to
// every 28th row.
const (
	hugeRows     = 1 << 18
	hugeDegree   = 9216
	hugeEdges    = hugeRows * hugeDegree
	hugeFeatures = 8200
	hugeStride   = 8208
	hugeBlock    = 64
	hugeStep     = 28
)

func hugeCol(v, j int) int32      { return int32(j*hugeStep + v%hugeStep) }
func hugeWeight(v, j int) float32 { return float32(v%7+1) / float32(j%5+1) }
func hugeFeature(v, c int) float32 {
	return float32((v*31+c)%1000) / 8
}

// hole makes a file of a size and fills some rows, each of width values.
func hole[T int32 | float32](t *testing.T, path, dtype string, shape []int, width int, value func(row, i int) T, rows ...kernels.Span) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header := store.NpyHeader(dtype, shape)
	if _, err := f.Write(header); err != nil {
		t.Fatal(err)
	}
	size := int64(len(header))
	all := int64(4)
	for _, n := range shape {
		all *= int64(n)
	}
	if err := f.Truncate(size + all); err != nil {
		t.Fatal(err)
	}
	buf := make([]T, width)
	for _, span := range rows {
		for v := span.Lo; v < span.Hi; v++ {
			for i := range buf {
				buf[i] = value(v, i)
			}
			raw := unsafe.Slice((*byte)(unsafe.Pointer(&buf[0])), 4*width)
			if _, err := f.WriteAt(raw, size+int64(v)*int64(4*width)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func hugeStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ends := []kernels.Span{{Lo: 0, Hi: hugeBlock}, {Lo: hugeRows - hugeBlock, Hi: hugeRows}}
	offsets := make([]int64, hugeRows+1)
	for v := range offsets {
		offsets[v] = int64(v) * hugeDegree
	}
	ptr := append(store.NpyHeader("<i8", []int{hugeRows + 1}), unsafe.Slice((*byte)(unsafe.Pointer(&offsets[0])), 8*len(offsets))...)
	files := map[string]store.FileMeta{}
	list := func(name, dtype string, shape ...int) string {
		files[name] = store.FileMeta{DType: dtype, Shape: shape}
		return filepath.Join(dir, name)
	}
	for _, side := range []string{"in", "out"} {
		if err := os.WriteFile(list(side+"_indptr.npy", "<i8", hugeRows+1), ptr, 0o644); err != nil {
			t.Fatal(err)
		}
		hole(t, list(side+"_indices.npy", "<i4", hugeEdges), "<i4", []int{hugeEdges}, hugeDegree, hugeCol, ends...)
		hole(t, list(side+"_weights.npy", "<f4", hugeEdges), "<f4", []int{hugeEdges}, hugeDegree, hugeWeight, ends...)
	}
	hole(t, list("features.npy", "<f4", hugeRows, hugeStride), "<f4", []int{hugeRows, hugeStride}, hugeStride, hugeFeature, ends...)
	hole[int32](t, list("order.npy", "<i4", hugeRows), "<i4", []int{hugeRows}, 1, nil)
	meta, err := json.Marshal(store.Meta{
		Version: 1, Name: "huge", Vertices: hugeRows, Edges: hugeEdges, Features: hugeFeatures, Weighted: true,
		FeatureKind: store.DenseFeatures, BlockRows: hugeBlock, Files: files,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.MetaFile), meta, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// onDisk is how many bytes the files in dir take.
func onDisk(t *testing.T, dir string) (sum int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, e.Name()), &st); err != nil {
			t.Fatal(err)
		}
		sum += st.Blocks * 512
	}
	return sum
}

// resident is how many bytes of mapped files are in this process's memory.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if rest, ok := strings.CutPrefix(string(line), "RssFile:"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Skip("SKIPPED: this kernel does not tell RssFile")
	return 0
}

func TestPartOfAHugeStore(t *testing.T) {
	if hugeEdges <= math.MaxInt32 || hugeRows*hugeStride <= math.MaxInt32 {
		t.Fatal("the store is not huge")
	}
	dir := hugeStore(t)
	const most = 64 << 20
	if got := onDisk(t, dir); got > most {
		t.Skipf("SKIPPED: the files take %d MiB, so this file system makes no holes", got>>20)
	}
	before := resident(t)
	check := func(when string, limit int64) {
		t.Helper()
		if got := resident(t) - before; got > limit {
			t.Errorf("%s %d MiB of mapped files are in memory, want at most %d", when, got>>20, limit>>20)
		} else {
			t.Logf("%s %.1f MiB of mapped files are in memory", when, float64(got)/(1<<20))
		}
	}

	p, err := store.OpenPart(dir, store.OpenOptions{}, kernels.Span{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	check("after opening,", 4<<20)
	train := []int32{1, hugeRows - 1}
	for _, parts := range []int{1, 4, 7, 64} {
		for i, r := range graph.Partition(p.Store, train, parts) {
			blocks := hugeRows / hugeBlock
			if r.Len() < blocks/parts-1 || r.Len() > blocks/parts+1 {
				t.Errorf("partition %d of %d has %d of %d equal blocks", i, parts, r.Len(), blocks)
			}
		}
	}

	last := kernels.Span{Lo: hugeRows - hugeBlock, Hi: hugeRows}
	if p.In.RowPtr[last.Lo] <= math.MaxInt32 {
		t.Fatalf("row %d begins at edge %d, want one beyond 2^31", last.Lo, p.In.RowPtr[last.Lo])
	}
	if err := p.Take(last); err != nil {
		t.Fatal(err)
	}
	window := int64(hugeBlock) * (hugeDegree*4*4 + hugeStride*4)
	check("with the last block taken,", window+8<<20)

	blocks := hugeRows / hugeBlock
	cuts := []task.Range{{Lo: 0, Hi: 1}, {Lo: 1, Hi: blocks - 1}, {Lo: blocks - 1, Hi: blocks}}
	g, err := graph.FindGhosts(context.Background(), p.Store, cuts, 2)
	if err != nil {
		t.Fatal(err)
	}
	seen, edges := map[int32]bool{}, int64(0)
	for v := last.Lo; v < last.Hi; v++ {
		for j := range hugeDegree {
			if u := hugeCol(v, j); int(u) < last.Lo {
				seen[u] = true
				edges++
			}
		}
	}
	if rows, cut := g.Backward.Total(); rows != int64(len(seen)) || cut != edges {
		t.Errorf("%d ghosts over %d edges, want %d over %d", rows, cut, len(seen), edges)
	}

	// Rows of others, at both ends of the offsets.
	rows := []int32{3, hugeBlock - 1, hugeRows - 2}
	err = p.EachIn(rows, func(i int, col []int32, val []float32) error {
		for j := range col {
			if v := int(rows[i]); len(col) != hugeDegree || col[j] != hugeCol(v, j) || val[j] != hugeWeight(v, j) {
				return fmt.Errorf("edge %d of row %d is from %d, weight %v", j, v, col[j], val[j])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	x, err := p.ReadDense(rows)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range rows {
		for c, got := range x.Row(i) {
			if want := hugeFeature(int(v), c); got != want {
				t.Fatalf("feature %d of row %d is %v, want %v", c, v, got, want)
			}
			if mapped := p.Dense.Row(hugeRows - 1)[c]; mapped != hugeFeature(hugeRows-1, c) {
				t.Fatalf("feature %d of the last row is %v, want %v", c, mapped, hugeFeature(hugeRows-1, c))
			}
		}
	}
	check("after reading rows of others,", window+12<<20)
	gather(t, p)
	check("after a gather,", window+12<<20)
	p.Store.Forget()
	check("after all was let go of,", 8<<20)
	if got := p.Dense.Row(hugeRows - 1)[5]; got != hugeFeature(hugeRows-1, 5) {
		t.Errorf("then a feature is %v, want %v", got, hugeFeature(hugeRows-1, 5))
	}
}

// gather sums the in-edges of the last block by the plan that its graph server has, on
// every device.
func gather(t *testing.T, p *store.Part) {
	t.Helper()
	block := task.Range{Lo: hugeRows/hugeBlock - 1, Hi: hugeRows / hugeBlock}
	plan, err := graph.Build(p.Store, graph.Options{Levels: 2, Backward: []bool{true}, Part: &graph.Part{Blocks: block, Rank: 2}})
	if err != nil {
		t.Fatal(err)
	}
	src, dst, g := &plan.Levels[0], &plan.Levels[1], plan.Hops[0].Fwd
	if own := dst.Span(block); g.RowPtr[own.Hi]-g.RowPtr[own.Lo] != hugeBlock*hugeDegree || int64(g.Edges()) != hugeBlock*hugeDegree || plan.Hops[0].Bwd.Edges() != g.Edges() {
		t.Fatalf("rows %v of the plan have %d of %d edges, want all %d", own, g.RowPtr[own.Hi]-g.RowPtr[own.Lo], g.Edges(), hugeBlock*hugeDegree)
	}
	for _, name := range []string{"ref", "cpu"} {
		dev, err := devices.Open(name)
		if err != nil {
			t.Logf("SKIPPED: %s: %v", name, err)
			continue
		}
		defer dev.Close()
		h, err := dev.Load(g)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer dev.Unload(h)
		s, err := dev.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		x, y := kernels.FromSlice(src.N, 2, make([]float32, 2*src.N)), kernels.FromSlice(dst.N, 2, make([]float32, 2*dst.N))
		for i := range src.N {
			x.Host[2*i], x.Host[2*i+1] = 1, float32(src.Store(i)%3)
		}
		s.SpMM(y, h, x, kernels.Gather{}, dst.Span(block))
		if err := s.Wait(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := dst.Span(block).Lo; i < dst.Span(block).Hi; i++ {
			v := int(dst.Store(i))
			var want [2]float64
			for j := range hugeDegree {
				w := float64(hugeWeight(v, j))
				want[0] += w
				want[1] += w * float64(hugeCol(v, j)%3)
			}
			for c, got := range y.Row(i) {
				if diff := math.Abs(float64(got) - want[c]); diff > 1e-4*want[c] {
					t.Errorf("%s: row %d column %d is %v, want %v", name, v, c, got, want[c])
				}
			}
		}
	}
}
