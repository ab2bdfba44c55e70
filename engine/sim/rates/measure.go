package rates

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"dorylus/engine/sim/workload"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// Options of Measure.
type Options struct {
	Device kernels.Device
	Store  *store.Store
	// Threads work at the same time, as the cores of a server do; at least 1.
	Threads int
	// Rows is how many rows a gather has at a time: those of an interval.
	Rows int
	// Reference is the width of the gather by which a too wide one is judged, where the keys
	// have none; default 128.
	Reference int
}

// Bounds on what is measured: bytes of a matrix of all vertices, edges of a call, and the
// time that each kind of work is given.
const (
	maxMatrix = 512 << 20
	maxEdges  = 12 << 20
	budget    = 120 * time.Millisecond
	rounds    = 3 // at least
)

// Measure runs every kind of work in keys, on the store's own edges where it gathers, and
// returns the seconds of a unit by key: the best of several rounds, which other programs
// disturb least.
func Measure(ctx context.Context, keys []workload.Key, o Options) (rates []Rate, err error) {
	o.Threads, o.Reference = max(o.Threads, 1), max(o.Reference, 128*b2i(o.Reference == 0))
	b := &bench{o: o}
	defer func() { err = errors.Join(err, b.close()) }()
	for range o.Threads {
		s, err := o.Device.NewStream()
		if err != nil {
			return nil, fmt.Errorf("measure speeds: %w", err)
		}
		b.streams = append(b.streams, s)
	}
	rates = make([]Rate, len(keys))
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		per, err := b.measure(k)
		if err != nil {
			return nil, fmt.Errorf("measure the speed of %v: %w", k, err)
		}
		rates[i] = Rate{Key: k, PerUnit: per, Measured: per > 0}
	}
	return rates, b.infer(rates)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// infer fills in what was not measured, by bytes and flops.
func (b *bench) infer(rates []Rate) error {
	var s Speeds
	widest := 0
	for _, r := range rates {
		if !r.Measured {
			continue
		}
		switch {
		case r.Key.Op == workload.Gather && r.Key.Cols > widest:
			widest, s.Gather = r.Key.Cols, r.Key.GatherBytes()/r.PerUnit
		case r.Key.Op == workload.Values:
			s.Values = r.Key.ValueBytes() / r.PerUnit
		case r.Key.Flops() > 0:
			s.Flops = max(s.Flops, r.Key.Flops()/r.PerUnit)
		}
	}
	for i := range rates {
		r := &rates[i]
		if r.Measured {
			continue
		}
		missing := func(speed *float64, k workload.Key, per float64) error {
			if *speed > 0 || per == 0 {
				return nil
			}
			t, err := b.measure(k)
			if err == nil && !(t > 0) {
				err = errors.New("it has no edges")
			}
			if err != nil {
				return fmt.Errorf("measure the speed of %v: %w", k, err)
			}
			*speed = (k.GatherBytes() + k.ValueBytes() + k.Flops()) / t
			return nil
		}
		if err := errors.Join(
			missing(&s.Gather, workload.Key{Op: workload.Gather, Cols: b.o.Reference}, r.Key.GatherBytes()),
			missing(&s.Values, workload.Key{Op: workload.Values}, r.Key.ValueBytes()),
			missing(&s.Flops, workload.Key{Op: workload.Product, Cols: 128, Inner: 128}, r.Key.Flops()),
		); err != nil {
			return err
		}
		for _, part := range []struct{ work, speed float64 }{{r.Key.GatherBytes(), s.Gather}, {r.Key.ValueBytes(), s.Values}, {r.Key.Flops(), s.Flops}} {
			if part.work > 0 {
				r.PerUnit += part.work / part.speed
			}
		}
	}
	return nil
}

// bench has what the measurements share.
type bench struct {
	o       Options
	streams []kernels.Stream
	graph   kernels.Graph
	mats    []*kernels.Mat
	lists   [][]int32 // that the device keeps
}

func (b *bench) close() error {
	var errs []error
	b.free()
	for _, s := range b.streams {
		errs = append(errs, s.Close())
	}
	if b.graph != nil {
		b.o.Device.Unload(b.graph)
	}
	return errors.Join(errs...)
}

func (b *bench) free() {
	for _, m := range b.mats {
		b.o.Device.Free(m)
	}
	if k, ok := b.o.Device.(kernels.Keeper); ok {
		for _, v := range b.lists {
			k.Drop(v)
		}
	}
	b.mats, b.lists = nil, nil
}

// mat is a matrix of small numbers, zero where nobody reads it.
func (b *bench) mat(rows, cols int, filled bool) (*kernels.Mat, error) {
	m, err := b.o.Device.Alloc(rows, cols)
	if err != nil {
		return nil, err
	}
	b.mats = append(b.mats, m)
	if !filled {
		return m, nil
	}
	values := m
	if m.Host == nil && rows*cols > 0 {
		values = kernels.FromSlice(rows, cols, make([]float32, rows*cols))
	}
	for i := range values.Rows {
		for c, row := 0, values.Row(i); c < len(row); c++ {
			row[c] = float32((i*7+c*13)%17-8) / 16
		}
	}
	if values == m {
		return m, nil
	}
	b.streams[0].Copy(m, values)
	return m, b.streams[0].Wait()
}

// keep has a device of its own memory hold lists that a run would have it hold.
func (b *bench) keep(lists ...[]int32) error {
	k, ok := b.o.Device.(kernels.Keeper)
	if !ok {
		return nil
	}
	for _, v := range lists {
		if err := k.Keep(v); err != nil {
			return err
		}
		b.lists = append(b.lists, v)
	}
	return nil
}

// call is one thread's share of a round, and its units.
type call func(s kernels.Stream, thread int)

// measure is the seconds of a unit of k on each of the threads; 0: it is not measured.
func (b *bench) measure(k workload.Key) (float64, error) {
	defer b.free()
	prepare := b.dense
	switch k.Op {
	case workload.Gather, workload.MaxGather, workload.AttentionFwd, workload.AttentionDst, workload.AttentionSrc:
		prepare = b.sparse
	case workload.Sparse, workload.SparseBack, workload.MaxBack, workload.EdgeDrop, workload.MultiLoss:
		return 0, nil
	}
	do, units, err := prepare(k)
	if err != nil || do == nil {
		return 0, err
	}
	best := math.Inf(1)
	for round, began := 0, time.Now(); round < rounds || time.Since(began) < budget; round++ {
		start := time.Now()
		var wg sync.WaitGroup
		errs := make([]error, len(b.streams))
		for t, s := range b.streams {
			wg.Go(func() {
				do(s, t)
				errs[t] = s.Wait()
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return 0, err
		}
		if round > 0 || rounds == 1 { // the first touches the memory
			best = min(best, time.Since(start).Seconds())
		}
	}
	return best / units, nil
}

// dense are the calls of ops on rows. Each thread has matrices of its own, of so many
// blocks that they come from memory, as in an epoch, and not from a cache.
func (b *bench) dense(k workload.Key) (call, float64, error) {
	const blocks = 8
	rows := min(b.o.Store.Meta.BlockRows, max(b.o.Store.Meta.Vertices, 1))
	cols := k.Cols
	if cols == 0 {
		cols = b.o.Reference
	}
	var sets [][]*kernels.Mat
	whole := blocks * rows
	shapes := [][2]int{{whole, cols}, {whole, cols}, {whole, cols}}
	switch k.Op {
	case workload.Product:
		shapes = [][2]int{{whole, k.Cols}, {whole, k.Inner}, {k.Inner, k.Cols}}
	case workload.ProductNT:
		shapes = [][2]int{{whole, k.Cols}, {whole, k.Inner}, {k.Cols, k.Inner}}
	case workload.ProductTN:
		shapes = [][2]int{{k.Inner, k.Cols}, {whole, k.Inner}, {whole, k.Cols}}
	}
	for range b.streams {
		var set []*kernels.Mat
		for _, s := range shapes {
			m, err := b.mat(s[0], s[1], true)
			if err != nil {
				return nil, 0, err
			}
			set = append(set, m)
		}
		sets = append(sets, set)
	}
	ids, labels, all := make([]int32, rows), make([]int32, rows), kernels.Span{Hi: rows}
	for i := range ids {
		ids[i], labels[i] = int32(i), int32(i%cols)
	}
	if err := b.keep(ids, labels); err != nil {
		return nil, 0, err
	}
	ep := &kernels.Epilogue{Act: k.Act}
	if k.Drop {
		ep.Drop = kernels.Dropout{P: 0.5, Key: 1, IDs: ids}
	}
	units := float64(rows) * float64(cols) * blocks
	var one func(s kernels.Stream, m []*kernels.Mat)
	switch k.Op {
	case workload.Product, workload.ProductNT, workload.ProductTN:
		t := map[string]kernels.Trans{workload.Product: kernels.NN, workload.ProductNT: kernels.NT, workload.ProductTN: kernels.TN}[k.Op]
		units = float64(rows) * blocks
		one = func(s kernels.Stream, m []*kernels.Mat) { s.GEMM(m[0], m[1], m[2], t, nil) }
	case workload.Epilogue:
		one = func(s kernels.Stream, m []*kernels.Mat) { s.Forward(m[0], m[1], ep, all) }
	case workload.EpilogueBack:
		one = func(s kernels.Stream, m []*kernels.Mat) { s.Backward(m[0], m[1], m[2], ep, all) }
	case workload.Loss:
		one = func(s kernels.Stream, m []*kernels.Mat) {
			s.SoftmaxXent(m[0], make([]float64, 1), m[1], labels, nil, 1, all)
		}
	case workload.Values:
		units *= 3
		one = func(s kernels.Stream, m []*kernels.Mat) { s.Add(m[0], m[1], m[2]) }
	default:
		return nil, 0, nil
	}
	return func(s kernels.Stream, t int) {
		for n := range blocks {
			block := slices.Clone(sets[t])
			for i, m := range block {
				if m.Rows == whole {
					block[i] = m.Sub(kernels.Span{Lo: n * rows, Hi: (n + 1) * rows})
				}
			}
			one(s, block)
		}
	}, units, nil
}

// sparse are the calls of gathers: the threads have spans of the store's rows, far apart.
func (b *bench) sparse(k workload.Key) (call, float64, error) {
	in := b.o.Store.In
	n := in.Rows()
	width := k.Cols + 2*k.Heads
	if b.graph == nil {
		g, err := b.o.Device.Load(in)
		if err != nil {
			return nil, 0, err
		}
		b.graph = g
	}
	if 4*int64(n)*int64(kernels.PadCols(width)) > maxMatrix || in.Edges() == 0 {
		return nil, 0, nil
	}
	var spans []kernels.Span
	var edges int64
	for t := range b.streams {
		lo := n / len(b.streams) * t
		hi := min(lo+max(b.o.Rows, 1), n)
		for hi > lo+1 && in.RowPtr[hi]-in.RowPtr[lo] > maxEdges {
			hi = lo + (hi-lo)/2
		}
		spans = append(spans, kernels.Span{Lo: lo, Hi: hi})
		edges += in.RowPtr[hi] - in.RowPtr[lo]
	}
	var mats []*kernels.Mat
	for i, cols := range []int{k.Cols, k.Cols, max(k.Heads, 1), max(k.Heads, 1), max(k.Heads, 1), max(k.Heads, 1)} {
		if i >= 2 && k.Heads == 0 {
			break
		}
		m, err := b.mat(n, cols, i > 0)
		if err != nil {
			return nil, 0, err
		}
		mats = append(mats, m)
	}
	self := kernels.Self{On: true}
	units := float64(edges) / float64(len(b.streams))
	if units == 0 {
		return nil, 0, nil
	}
	at := kernels.Attention{Heads: k.Heads, Slope: 0.2, Self: self}
	if k.Drop {
		at.Drop = kernels.Dropout{P: 0.5, Key: 1}
	}
	return func(s kernels.Stream, t int) {
		switch k.Op {
		case workload.Gather:
			s.SpMM(mats[0], b.graph, mats[1], kernels.Gather{Self: self}, spans[t])
		case workload.MaxGather:
			s.SpMMMax(mats[0], nil, b.graph, mats[1], spans[t])
		case workload.AttentionFwd:
			s.GAT(mats[0], mats[2], b.graph, mats[1], mats[3], mats[4], at, nil, spans[t])
		case workload.AttentionDst:
			s.GATBackDst(mats[2], mats[3], b.graph, mats[1], mats[4], mats[5], mats[5], mats[1], at, spans[t])
		case workload.AttentionSrc:
			s.GATBackSrc(mats[0], mats[2], b.graph, mats[1], mats[3], mats[4], mats[5], mats[5], mats[1], at, spans[t])
		}
	}, units, nil
}
