package pipeline

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"dorylus/engine/model"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// rowsInFlight is the default of PredictOptions.Chunk.
const rowsInFlight = 64 << 20

// wanted says which outputs are.
type wanted struct{ Logits, Embedding bool }

// prediction is what server 0 tells the others.
type prediction struct {
	Wanted  wanted
	Model   model.Config
	Rows    []int
	Weights [][]float32
}

// agree gives all servers what server 0 computes with, once it is sure that they have the
// same data and kernels.
func (o *PredictOptions) agree(ctx context.Context, to Outputs) (wanted, error) {
	p := prediction{Wanted: wanted{to.Logits != nil, to.Embedding != nil}, Model: o.Model}
	cl := o.Cluster
	if cl == nil {
		return p.Wanted, nil
	}
	if len(cl.Blocks) != cl.Group.Size() {
		return p.Wanted, fmt.Errorf("%d partitions for %d graph servers", len(cl.Blocks), cl.Group.Size())
	}
	mine, err := encodeGob([]string{o.Store.Meta.Name, fingerprint(o.Store), kindOf(o.Device), fmt.Sprint(cl.Blocks)})
	if err != nil {
		return p.Wanted, err
	}
	if err := sameAll(ctx, cl, "data of the prediction", mine, []string{"data", "contents of the data", "kernels", "partitions"}); err != nil {
		return p.Wanted, err
	}
	if cl.leads() { // the others decode into memory of their own
		for _, m := range o.Weights {
			p.Rows, p.Weights = append(p.Rows, m.Rows), append(p.Weights, m.Host)
		}
	}
	if err := shareFrom0(ctx, cl, "the model", &p); err != nil || cl.leads() {
		return p.Wanted, err
	}
	o.Model, o.Weights = p.Model, nil
	for i, w := range p.Weights {
		if i >= len(p.Rows) || p.Rows[i] < 1 || len(w)%p.Rows[i] != 0 {
			return p.Wanted, fmt.Errorf("weights %d of server 0 are %d values, which is no matrix", i, len(w))
		}
		o.Weights = append(o.Weights, kernels.FromSlice(p.Rows[i], len(w)/p.Rows[i], w))
	}
	return p.Wanted, nil
}

// kindOf is a device's name without its number: another GPU has the same kernels.
func kindOf(d kernels.Device) string {
	kind, _, _ := strings.Cut(d.Name(), ":")
	return kind
}

// sameAll compares a list of texts that all servers must have the same; what names them.
func sameAll(ctx context.Context, cl *Cluster, key string, mine []byte, what []string) error {
	all, err := cl.Group.Gather(ctx, key, mine)
	if err != nil {
		return err
	}
	var own []string
	if err := decodeGob(mine, &own); err != nil {
		return err
	}
	for rank, data := range all {
		var theirs []string
		if err := decodeGob(data, &theirs); err != nil || len(theirs) != len(own) {
			return fmt.Errorf("%s of server %d: %d of %d came, %v", key, rank, len(theirs), len(own), err)
		}
		for i := range own {
			if own[i] != theirs[i] {
				return fmt.Errorf("server %d has another %s than server %d: %s, not %s: start all servers with the same data and --device",
					rank, what[i], cl.Group.Rank(), theirs[i], own[i])
			}
		}
	}
	return nil
}

// deliver gives all rows of a buffer of a level that holds every vertex to the function of
// server 0, in pieces: of each partition some, until all have given theirs. What comes
// while it works on a piece is one more, and together they are chunk bytes.
func (ev *evaluator) deliver(ctx context.Context, st *store.Store, name string, buf, chunk int, to func(Rows) error) error {
	if chunk <= 0 {
		chunk = rowsInFlight
	}
	p, cl := ev.pass, ev.cluster
	src := p.full[buf]
	size := 1
	if cl != nil {
		size = cl.Group.Size()
	}
	step := max(1, chunk/2/size/(4*src.Cols)) // rows of a piece
	level := p.level(p.levelOf(buf))
	own := level.Span(p.plan.Own)
	if cl == nil {
		for lo := 0; lo < level.N; lo += step {
			span := kernels.Span{Lo: lo, Hi: min(lo+step, level.N)}
			some, err := ev.rowsOf(buf, span)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if err := to(Rows{st.Order[span.Lo:span.Hi], some}); err != nil {
				return err
			}
		}
		return nil
	}
	spans, rounds := make([]kernels.Span, size), 0
	for rank, b := range cl.Blocks {
		spans[rank] = kernels.Span{Lo: min(b.Lo*p.plan.BlockRows, st.Meta.Vertices), Hi: min(b.Hi*p.plan.BlockRows, st.Meta.Vertices)}
		rounds = max(rounds, (spans[rank].Len()+step-1)/step)
	}
	if mine := spans[cl.Group.Rank()]; own.Len() != mine.Len() {
		return fmt.Errorf("%s: %d rows instead of %d", name, own.Len(), mine.Len())
	}
	piece := func(s kernels.Span, round int) kernels.Span {
		lo := min(s.Lo+round*step, s.Hi)
		return kernels.Span{Lo: lo, Hi: min(lo+step, s.Hi)}
	}
	for round := range rounds {
		key := fmt.Sprintf("%s, part %d of %d", name, round+1, rounds)
		var data []byte
		mine, err := ev.rowsOf(buf, piece(own, round))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if !cl.leads() {
			data = encodeRows(mine)
		}
		all, err := cl.Group.Collect(ctx, key, data)
		if err != nil {
			return err
		}
		if round+1 < rounds { // server 0 has room for the next piece
			if _, err := cl.Group.Gather(ctx, key+" is here", nil); err != nil {
				return err
			}
		}
		if !cl.leads() {
			continue
		}
		for rank, data := range all {
			span := piece(spans[rank], round)
			rows := Rows{Vertices: st.Order[span.Lo:span.Hi]}
			if rank == cl.Group.Rank() {
				rows.Values = mine
			} else if rows.Values, err = decodeRows(data, span.Len(), src.Cols); err != nil {
				return fmt.Errorf("%s, of server %d: %w", key, rank, err)
			}
			all[rank] = nil
			if span.Len() == 0 {
				continue
			}
			if err := to(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodeRows is m, value after value.
func encodeRows(m *kernels.Mat) []byte {
	data := make([]byte, 0, 4*m.Rows*m.Cols)
	for i := range m.Rows {
		for _, x := range m.Row(i) {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	}
	return data
}

func decodeRows(data []byte, rows, cols int) (*kernels.Mat, error) {
	if len(data) != 4*rows*cols {
		return nil, fmt.Errorf("%d bytes for %d rows of %d values", len(data), rows, cols)
	}
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return kernels.FromSlice(rows, cols, values), nil
}
