package worker

import (
	"container/list"
	"fmt"
	"slices"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/lambda/codec"
	"dorylus/lambda/shard"
	"dorylus/lambda/wire"
)

// store is what a worker keeps: shards with their buffers, the least recently used
// ones given up first, and the newest content of each parameter.
type store struct {
	cfg     Config
	job     *wire.Job
	prog    *model.Program
	local   *backend.Local
	enc     *codec.Encoder
	used    int64                     // bytes, of Config.Memory
	rooms   map[roomKey]*list.Element // of *room
	order   *list.List                // most recently used first
	weights []weight                  // by parameter
	grads   []*kernels.Mat            // by parameter; nil: none yet
}

type roomKey struct {
	pass     engine.Pass
	interval int
}

// room is a shard, and what its buffers hold.
type room struct {
	*shard.Room
	key   roomKey
	bytes int64
	// held[buf][block] is what the block's rows of a buffer are.
	held [][]content
}

// content names what wrote rows, and in which walk.
type content struct {
	walk   int64
	writer int
}

// nothing is the content of rows that have not been set.
var nothing = content{-1, -1}

type weight struct {
	hash uint64
	m    *kernels.Mat
}

func newStore(cfg Config, prog *model.Program, j *wire.Job) (*store, error) {
	enc, err := j.Encoder()
	if err != nil {
		return nil, err
	}
	st := &store{
		cfg: cfg, job: j, prog: prog, local: backend.NewLocal(cfg.Device), enc: enc, rooms: map[roomKey]*list.Element{}, order: list.New(),
		weights: make([]weight, len(prog.Params)), grads: make([]*kernels.Mat, len(prog.Params)),
	}
	for _, p := range prog.Params {
		st.used += 2 * 4 * int64(p.Rows) * int64(kernels.PadCols(p.Cols)) // weights and gradients, from the first task on
	}
	return st, nil
}

func (st *store) putShard(m *wire.Message) error {
	s, err := shard.Decode(m.Shard.Head, m.Parts, len(st.prog.Bufs), st.cfg.Memory)
	if err != nil {
		return err
	}
	if err := s.Fits(&st.job.Model, st.prog, st.cfg.Memory); err != nil {
		return fmt.Errorf("take a shard: %w", err)
	}
	key, bytes := roomKey{s.Pass, s.Interval}, s.Bytes(st.prog)
	if at, ok := st.rooms[key]; ok {
		st.drop(at)
	}
	for st.used+bytes > st.cfg.Memory && st.order.Len() > 0 {
		st.drop(st.order.Back())
	}
	opened, err := s.Open(st.prog, st.cfg.Device)
	if err != nil {
		return fmt.Errorf("make room for the shard of interval %d: %w", s.Interval, err)
	}
	r := &room{Room: opened, key: key, bytes: bytes, held: make([][]content, len(st.prog.Bufs))}
	for b := range r.held {
		r.held[b] = slices.Repeat([]content{nothing}, s.Blocks())
	}
	st.rooms[key] = st.order.PushFront(r)
	st.used += bytes
	return nil
}

func (st *store) drop(at *list.Element) {
	r := at.Value.(*room)
	st.order.Remove(at)
	delete(st.rooms, r.key)
	st.used -= r.bytes
	r.Close()
}

// room is the shard of an interval, nil if it is not here.
func (st *store) room(p engine.Pass, interval int) *room {
	at, ok := st.rooms[roomKey{p, interval}]
	if !ok {
		return nil
	}
	st.order.MoveToFront(at)
	return at.Value.(*room)
}

func (st *store) putWeight(m *wire.Message) error {
	p := m.Weight.Param
	if p < 0 || p >= len(st.weights) || len(m.Parts) != 1 {
		return fmt.Errorf("read parameter %d of %d: %d parts came, want one", p, len(st.weights), len(m.Parts))
	}
	w := &st.weights[p]
	if w.m == nil {
		var err error
		if w.m, err = st.cfg.Device.Alloc(st.prog.Params[p].Rows, st.prog.Params[p].Cols); err != nil {
			return fmt.Errorf("make room for parameter %d: %w", p, err)
		}
	}
	if err := codec.Decode(m.Parts[0], w.m); err != nil {
		return fmt.Errorf("read parameter %s: %w", st.prog.Params[p].Name, err)
	}
	w.hash = m.Weight.Hash
	return nil
}

// grad is a matrix for a gradient of parameter p, used anew by every block.
func (st *store) grad(p int) (*kernels.Mat, error) {
	if st.grads[p] == nil {
		m, err := st.cfg.Device.Alloc(st.prog.Params[p].Rows, st.prog.Params[p].Cols)
		if err != nil {
			return nil, fmt.Errorf("make room for a gradient of %s: %w", st.prog.Params[p].Name, err)
		}
		st.grads[p] = m
	}
	return st.grads[p], nil
}

func (st *store) close() {
	for st.order.Len() > 0 {
		st.drop(st.order.Back())
	}
	for p := range st.weights {
		st.cfg.Device.Free(st.weights[p].m)
		st.cfg.Device.Free(st.grads[p])
	}
	st.local.Close()
}
