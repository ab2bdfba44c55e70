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
	sums    sums                      // of the task under way
	grads   []int                     // by parameter: how many matrices of sums there are
	coming  *coming                   // nil: no shard has begun
}

// coming is a shard of which there are so many chunks.
type coming struct {
	*shard.Reader
	chunks int
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
		weights: make([]weight, len(prog.Params)), grads: make([]int, len(prog.Params)),
		sums: sums{dev: cfg.Device, free: make([][]*kernels.Mat, len(prog.Params))},
	}
	for p := range prog.Params {
		st.used += 2 * st.paramBytes(p) // weights and gradients, from the first task on
	}
	return st, nil
}

func (st *store) paramBytes(p int) int64 {
	spec := &st.prog.Params[p]
	return 4 * int64(spec.Rows) * int64(kernels.PadCols(spec.Cols))
}

// putShard begins a shard, in the place of the one that its interval has here.
func (st *store) putShard(m *wire.Message) error {
	r, err := shard.NewReader(m.Shard.Head, len(st.prog.Bufs), st.cfg.Memory)
	if err != nil {
		return err
	}
	st.coming = &coming{Reader: r}
	pass, interval := r.Key()
	if at, ok := st.rooms[roomKey{pass, interval}]; ok {
		st.drop(at)
	}
	return st.come(m.Parts, m.Shard.More)
}

// putChunk goes on with it.
func (st *store) putChunk(m *wire.Message) error {
	if st.coming == nil {
		return fmt.Errorf("chunk %d of a shard came, and no shard has begun", m.Chunk.N)
	}
	if want := st.coming.chunks + 1; m.Chunk.N != want {
		err := st.incomplete(fmt.Sprintf("chunk %d", m.Chunk.N))
		st.forgo()
		return err
	}
	st.coming.chunks++
	return st.come(m.Parts, m.Chunk.More)
}

// incomplete is what is wrong where something else came than the next chunk; nil where no
// shard has begun.
func (st *store) incomplete(instead string) error {
	if st.coming == nil {
		return nil
	}
	_, interval := st.coming.Key()
	return fmt.Errorf("%s came before the shard of interval %d was whole: chunk %d is next", instead, interval, st.coming.chunks+1)
}

// forgo gives up a shard that has begun.
func (st *store) forgo() {
	if st.coming != nil {
		st.coming.Close()
		st.coming = nil
	}
}

// come takes frames of the shard that has begun, and others' memory for them.
func (st *store) come(frames [][]byte, more bool) error {
	r := st.coming
	if err := r.Add(frames); err != nil {
		st.forgo()
		return err
	}
	st.makeRoom(r.Bytes())
	if more {
		return nil
	}
	st.coming = nil
	s, err := r.Shard()
	if err != nil {
		return err
	}
	return st.open(s)
}

// makeRoom drops the shards that were used least recently, until so many bytes are left.
func (st *store) makeRoom(bytes int64) {
	for st.used+bytes > st.cfg.Memory && st.order.Len() > 0 {
		st.drop(st.order.Back())
	}
}

// open makes a shard ready for tasks.
func (st *store) open(s *shard.Shard) error {
	if err := s.Fits(&st.job.Model, st.prog, st.cfg.Memory); err != nil {
		return fmt.Errorf("take a shard: %w", err)
	}
	key, bytes := roomKey{s.Pass, s.Interval}, s.Bytes(st.prog)
	st.makeRoom(bytes)
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

// grad is a matrix for a gradient of parameter p; sums takes it back.
func (st *store) grad(p int) (*kernels.Mat, error) {
	fresh := len(st.sums.free[p]) == 0
	m, err := st.sums.take(p, st.prog.Params[p].Rows, st.prog.Params[p].Cols)
	if err != nil {
		return nil, fmt.Errorf("make room for a gradient of %s: %w", st.prog.Params[p].Name, err)
	}
	if fresh {
		if st.grads[p]++; st.grads[p] > 1 { // the first one counts from the beginning
			st.used += st.paramBytes(p)
		}
	}
	return m, nil
}

func (st *store) close() {
	for st.order.Len() > 0 {
		st.drop(st.order.Back())
	}
	st.forgo()
	for p := range st.weights {
		st.cfg.Device.Free(st.weights[p].m)
	}
	st.sums.close()
	st.local.Close()
}
