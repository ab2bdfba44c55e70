package pipeline

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// routes say which rows of a published buffer go to other partitions and which come from
// them, as rows of the buffer, ascending.
type routes struct {
	send [][]route // by own interval
	recv [][]int32 // by interval; nil for own ones
}

// route has what partition to gathers of an interval.
type route struct {
	to   int
	rows []int32
}

// addRoutes tells the other partitions which rows this one gathers, and hears which rows
// of this one they do.
func (p *pass) addRoutes(part *graph.Part) error {
	all, err := part.Gather(fmt.Sprintf("ghosts of the %s pass", p.name()), encodeNeeds(p.plan.Needs))
	if err != nil {
		return err
	}
	needs := make([][]graph.Need, len(all))
	for rank, data := range all {
		if needs[rank], err = decodeNeeds(data, len(p.plan.Needs)); err != nil {
			return fmt.Errorf("ghosts of partition %d: %w", rank, err)
		}
	}
	p.routes = make([]*routes, len(p.steps))
	for s, step := range p.steps {
		if step.Publish == model.NoBuf {
			continue
		}
		r := &routes{send: make([][]route, p.own.Len()), recv: make([][]int32, len(p.intervals))}
		p.routes[s] = r
		mine := p.read(s, needs[part.Rank])
		for j, blocks := range p.intervals {
			if !p.own.Has(j) {
				if r.recv[j], err = p.local(step.Publish, within(mine, p.reach(step.Publish, blocks))); err != nil {
					return err
				}
			}
		}
		for to := range needs {
			if to == part.Rank {
				continue
			}
			theirs := p.read(s, needs[to])
			for i := range r.send {
				rows, err := p.local(step.Publish, within(theirs, p.reach(step.Publish, p.intervals[p.own.Lo+i])))
				if err != nil {
					return fmt.Errorf("ghosts of partition %d: %w", to, err)
				}
				if len(rows) > 0 {
					r.send[i] = append(r.send[i], route{to, rows})
				}
			}
		}
	}
	return p.keepRoutes()
}

// keepRoutes lets a device hold the lists of rows, which are the same in all epochs. They
// are lists of their own from then on: others may be kept that begin where they did.
func (p *pass) keepRoutes() error {
	dev, ok := p.dev.(kernels.Keeper)
	if !ok {
		return nil
	}
	keep := func(list *[]int32) error {
		own := slices.Clone(*list)
		if err := dev.Keep(own); err != nil {
			return fmt.Errorf("keep a list of %d rows that go from one partition to another: %w", len(own), err)
		}
		*list = own
		p.kept = append(p.kept, own)
		return nil
	}
	for _, r := range p.routes {
		if r == nil {
			continue
		}
		for _, to := range r.send {
			for i := range to {
				if err := keep(&to[i].rows); err != nil {
					return err
				}
			}
		}
		for i := range r.recv {
			if err := keep(&r.recv[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropRoutes ends what keepRoutes has begun.
func (p *pass) dropRoutes() {
	for _, list := range p.kept {
		p.dev.(kernels.Keeper).Drop(list)
	}
	p.kept = nil
}

// read are the rows, of the store or of blocks, that a partition gathers of what step
// publishes.
func (p *pass) read(step int, needs []graph.Need) []int32 {
	var lists [][]int32
	for _, s := range p.steps {
		switch {
		case s.Gather == nil || s.Reads != step:
		case s.Gather.Reduce != nil:
			if p.train { // an evaluation reads none
				blocks := make([]int32, p.plan.Blocks)
				for b := range blocks {
					blocks[b] = int32(b)
				}
				lists = append(lists, blocks)
			}
		case s.Gather.Back:
			lists = append(lists, needs[s.Gather.Hop].Bwd)
		default:
			lists = append(lists, needs[s.Gather.Hop].Fwd)
		}
	}
	return graph.Union(lists...)
}

// reach are the rows, of the store or of blocks, that an interval has in a buffer.
func (p *pass) reach(buf int, blocks task.Range) task.Range {
	if p.prog.Bufs[buf].PerBlock {
		return blocks
	}
	return task.Range{Lo: blocks.Lo * p.plan.BlockRows, Hi: blocks.Hi * p.plan.BlockRows}
}

// within is the part of an ascending list that lies in r.
func within(list []int32, r task.Range) []int32 {
	lo, _ := slices.BinarySearch(list, int32(min(r.Lo, math.MaxInt32))) // a last block may end beyond
	hi, _ := slices.BinarySearch(list, int32(min(r.Hi, math.MaxInt32)))
	return list[lo:hi]
}

// local are the rows of a buffer that hold rows of the store.
func (p *pass) local(buf int, rows []int32) ([]int32, error) {
	level := p.level(p.levelOf(buf))
	if p.prog.Bufs[buf].PerBlock || level.Rows == nil {
		return rows, nil
	}
	out := make([]int32, len(rows))
	for i, v := range rows {
		at, found := slices.BinarySearch(level.Rows, v)
		if !found {
			return nil, fmt.Errorf("row %d of the store is not among the rows of %s: the servers do not have the same store or settings", v, p.prog.Bufs[buf].Name)
		}
		out[i] = int32(at)
	}
	return out, nil
}

func encodeNeeds(needs []graph.Need) []byte {
	var out []byte
	for _, n := range needs {
		for _, list := range [][]int32{n.Fwd, n.Bwd} {
			out = binary.LittleEndian.AppendUint32(out, uint32(len(list)))
			for _, v := range list {
				out = binary.LittleEndian.AppendUint32(out, uint32(v))
			}
		}
	}
	return out
}

func decodeNeeds(data []byte, hops int) ([]graph.Need, error) {
	needs := make([]graph.Need, hops)
	for k := range needs {
		for _, list := range []*[]int32{&needs[k].Fwd, &needs[k].Bwd} {
			if len(data) < 4 {
				return nil, fmt.Errorf("the list of hop %d is cut off", k)
			}
			n := int(binary.LittleEndian.Uint32(data))
			if data = data[4:]; n > len(data)/4 {
				return nil, fmt.Errorf("the list of hop %d has %d rows in %d bytes", k, n, len(data))
			}
			*list = make([]int32, n)
			for i := range *list {
				v := int32(binary.LittleEndian.Uint32(data[4*i:]))
				if v < 0 || i > 0 && v <= (*list)[i-1] {
					return nil, fmt.Errorf("the list of hop %d is not ascending: %d after %d", k, v, (*list)[max(i-1, 0)])
				}
				(*list)[i] = v
			}
			data = data[4*n:]
		}
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%d bytes are left over", len(data))
	}
	return needs, nil
}

// cut divides the pass into intervals. Those of a partition follow those of the ones
// before it; own are its numbers.
func (p *pass) cut(count int, part *graph.Part) error {
	mine := p.plan.Cut(count)
	p.intervals, p.own, p.ends = mine, task.Range{Hi: len(mine)}, []int{len(mine)}
	if part == nil {
		return nil
	}
	var data []byte
	for _, r := range mine {
		data = binary.LittleEndian.AppendUint32(data, uint32(r.Lo))
		data = binary.LittleEndian.AppendUint32(data, uint32(r.Hi))
	}
	all, err := part.Gather(fmt.Sprintf("intervals of the %s pass", p.name()), data)
	if err != nil {
		return err
	}
	p.intervals, p.ends = nil, nil
	next := 0
	for rank, d := range all {
		if rank == part.Rank {
			p.own = task.Range{Lo: len(p.intervals), Hi: len(p.intervals) + len(mine)}
		}
		for ; len(d) >= 8; d = d[8:] {
			r := task.Range{Lo: int(binary.LittleEndian.Uint32(d)), Hi: int(binary.LittleEndian.Uint32(d[4:]))}
			if r.Lo != next || r.Hi <= r.Lo || r.Hi > p.plan.Blocks {
				return fmt.Errorf("partition %d has an interval of blocks [%d,%d) behind block %d of %d", rank, r.Lo, r.Hi, next, p.plan.Blocks)
			}
			next = r.Hi
			p.intervals = append(p.intervals, r)
		}
		p.ends = append(p.ends, len(p.intervals))
	}
	if next != p.plan.Blocks {
		return fmt.Errorf("the intervals of all partitions end at block %d of %d", next, p.plan.Blocks)
	}
	return nil
}

// wants says what is wrong with a message of another partition to this pass: n rows, or
// the end of an interval.
func (p *pass) wants(m *engine.RowMsg, n int) error {
	if m.From < 0 || m.From >= len(p.ends) || m.Interval >= p.ends[m.From] || m.Interval < 0 || m.From > 0 && m.Interval < p.ends[m.From-1] || p.own.Has(m.Interval) {
		return fmt.Errorf("the %s pass has no interval %d at server %d", p.name(), m.Interval, m.From)
	}
	if m.Finished {
		if n > 0 || m.Cols > 0 {
			return fmt.Errorf("%d rows of %d where none belong", n, m.Cols)
		}
		return nil
	}
	if m.Step < 0 || m.Step >= len(p.steps) || p.routes[m.Step] == nil {
		return fmt.Errorf("the %s pass publishes nothing in step %d", p.name(), m.Step)
	}
	cols, rows := p.prog.Bufs[p.steps[m.Step].Publish].Cols, len(p.routes[m.Step].recv[m.Interval])
	if m.Cols != cols || n != rows || n == 0 {
		return fmt.Errorf("%d rows of %d instead of %d of %d", n, m.Cols, rows, cols)
	}
	return nil
}

// name is the pass in words.
func (p *pass) name() string {
	if p.train {
		return "training"
	}
	return "evaluation"
}

// refs translates the columns of rows that are references to rows of the level below: to
// rows of the store when they leave, and back when they come.
func (p *pass) refs(spec *model.Buf, data []float32, f func(*graph.Level, int32) int32) {
	if spec.RefHi == 0 {
		return
	}
	below := &p.plan.Levels[spec.Level-1]
	for lo := 0; lo < len(data); lo += spec.Cols {
		for c := spec.RefLo; c < spec.RefHi; c++ {
			if v := kernels.ArgOf(data[lo+c]); v >= 0 {
				data[lo+c] = kernels.ArgBits(f(below, v))
			}
		}
	}
}
