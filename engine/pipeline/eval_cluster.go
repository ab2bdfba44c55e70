package pipeline

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"math"

	"dorylus/engine"
	"dorylus/kernels"
)

// blockTallies is what one server has counted in an evaluation.
type blockTallies struct {
	First int // block
	Right [][roles]int64
	Rows  [][roles]int64
	Loss  []float64
	Spent []byte // see Cluster.Spent
}

// ruling is a verdict on its way from server 0 to the others.
type ruling struct {
	Result engine.Evaluated
	Told   string
	Err    string
}

// agree makes an evaluation's verdict the same everywhere: server 0 sums what all have
// counted, in the order of blocks as one process would, and tells the others, together
// with the reason to stop that it has been told. spent is what this server has spent.
func (ev *evaluator) agree(ctx context.Context, c *Cluster, epoch int, told string, spent []byte) verdict {
	key := fmt.Sprintf("evaluation %d", ev.runs)
	var r ruling
	bills, err := ev.pool(ctx, c, key, spent)
	if c.leads() && err == nil {
		r.Result, err = ev.result(epoch)
		if err != nil { // the evaluation's own: the others hear it
			r.Err, err = err.Error(), nil
		} else {
			r.Told = told
		}
	}
	if err == nil {
		err = shareFrom0(ctx, c, key+", verdict", &r)
	}
	if err == nil && r.Err != "" {
		err = errors.New(r.Err)
	}
	return verdict{r.Result, r.Told, bills, err}
}

// pool brings what the result is computed from to server 0, and what all have spent, by
// rank.
func (ev *evaluator) pool(ctx context.Context, c *Cluster, key string, spent []byte) ([][]byte, error) {
	if ev.metric != "accuracy" || ev.truth.Sets != nil {
		var err error
		if ev.logits, err = ev.collect(ctx, key+", logits", ev.logits); err != nil {
			return nil, err
		}
	}
	own := ev.pass.plan.Own
	mine := blockTallies{First: own.Lo, Spent: spent}
	for _, t := range ev.parts[own.Lo:own.Hi] {
		mine.Right, mine.Rows, mine.Loss = append(mine.Right, t.right), append(mine.Rows, t.rows), append(mine.Loss, t.valLoss)
	}
	data, err := encodeGob(&mine)
	if err != nil {
		return nil, err
	}
	all, err := c.Group.Collect(ctx, key, data)
	if err != nil {
		return nil, err
	}
	bills := make([][]byte, len(all))
	for rank, data := range all { // none but at server 0
		var theirs blockTallies
		if err := decodeGob(data, &theirs); err != nil {
			return nil, fmt.Errorf("what server %d has counted in %s: %w", rank, key, err)
		}
		if n := len(theirs.Loss); theirs.First < 0 || theirs.First+n > len(ev.parts) || len(theirs.Right) != n || len(theirs.Rows) != n {
			return nil, fmt.Errorf("server %d has counted %d blocks from %d on in %s, there are %d", rank, n, theirs.First, key, len(ev.parts))
		}
		for i := range theirs.Loss {
			ev.parts[theirs.First+i] = tally{right: theirs.Right[i], rows: theirs.Rows[i], valLoss: theirs.Loss[i]}
		}
		bills[rank] = theirs.Spent
	}
	return bills, nil
}

// collect brings the logits, whose level holds all rows, to server 0, which puts them
// into to, made where it is nil; it is nil elsewhere.
func (ev *evaluator) collect(ctx context.Context, key string, to *kernels.Mat) (*kernels.Mat, error) {
	p, c := ev.pass, ev.cluster
	src := ev.own
	if c == nil {
		return src, nil
	}
	level := p.level(p.levelOf(p.prog.Output))
	own := level.Span(p.plan.Own)
	data := make([]byte, 0, 8+4*own.Len()*src.Cols)
	if own.Len() > 0 {
		data = binary.LittleEndian.AppendUint64(data, uint64(level.Store(own.Lo)))
	}
	for i := own.Lo; i < own.Hi; i++ {
		for _, x := range src.Row(i) {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	}
	all, err := c.Group.Collect(ctx, key, data)
	if err != nil || !c.leads() {
		return nil, err
	}
	n := len(ev.role)
	if to == nil {
		to = kernels.FromSlice(n, src.Cols, make([]float32, n*src.Cols))
	}
	rows := 0
	for rank, data := range all {
		if len(data) < 8 {
			continue
		}
		first := binary.LittleEndian.Uint64(data)
		values := data[8:]
		count := len(values) / 4 / src.Cols
		if len(values) != 4*count*src.Cols || first > uint64(n) || int(first)+count > n {
			return nil, fmt.Errorf("%s of server %d: %d bytes for rows from %d on", key, rank, len(values), first)
		}
		for i := range count * src.Cols {
			to.Host[int(first)*src.Cols+i] = math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:]))
		}
		rows += count
	}
	if rows != n {
		return nil, fmt.Errorf("%s: %d rows of %d have come", key, rows, n)
	}
	return to, nil
}

// shareFrom0 gives all servers the value that v has at server 0.
func shareFrom0(ctx context.Context, c *Cluster, key string, v any) error {
	var mine []byte
	var err error
	if c.leads() {
		if mine, err = encodeGob(v); err != nil {
			return err
		}
	}
	all, err := c.Group.Gather(ctx, key, mine)
	if err != nil || c.leads() {
		return err
	}
	if err := decodeGob(all[0], v); err != nil {
		return fmt.Errorf("%s, from server 0: %w", key, err)
	}
	return nil
}

func encodeGob(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func decodeGob(data []byte, v any) error { return gob.NewDecoder(bytes.NewReader(data)).Decode(v) }
