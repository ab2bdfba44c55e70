package cuda

import (
	"slices"

	"dorylus/kernels"
)

// addPlan is a list of AddRows sorted for dk_add_rows, on the device.
type addPlan struct {
	n               int
	to, start, from address
	block           address // of all three; 0 if it is scratch memory
}

func (a *addPlan) free(p *pool) { p.put(a.block) }

// AddRows implements kernels.Stream.
func (q *queue) AddRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckAddRows(dst, src, ids)
	o := q.op("AddRows")
	d, s := o.mat(dst), o.mat(src)
	o.run(func(x *runner) error {
		if d.cols == 0 {
			return nil
		}
		p, err := x.addPlan(ids)
		if err != nil {
			return err
		}
		return x.each("dk_add_rows", p.n, d.cols, d, s, p.to, p.start, p.from, int64(p.n), int32(d.cols), shiftOf(d.cols))
	})
}

// addPlan is the plan of ids: made for this op, or once for a list that is kept.
func (x *runner) addPlan(ids []int32) (*addPlan, error) {
	k, at := x.d.holding(ids)
	if k == nil {
		return x.newAddPlan(ids, x.scratch)
	}
	key := listKey{&ids[0], at, at + len(ids)}
	if p := k.adds[key]; p != nil {
		return p, nil
	}
	var block address
	p, err := x.newAddPlan(ids, func(n int64) (a address, err error) {
		block, err = x.pool.get(x.c, n, "a sorted list")
		return block, err
	})
	if err != nil {
		x.pool.put(block)
		return nil, err
	}
	p.block = block
	k.adds[key] = p
	return p, nil
}

// newAddPlan sorts ids and brings the result to memory of alloc.
func (x *runner) newAddPlan(ids []int32, alloc func(int64) (address, error)) (*addPlan, error) {
	to, start, from := sortAdds(ids)
	if len(to) == 0 {
		return &addPlan{}, nil
	}
	startAt := int64(0)
	toAt := startAt + 8*int64(len(start))
	fromAt := toAt + 4*int64(len(to))
	a, err := alloc(fromAt + 4*int64(len(from)))
	if err != nil {
		return nil, err
	}
	p := &addPlan{n: len(to), start: a, to: a + address(toAt), from: a + address(fromAt)}
	if err := x.upload(p.start, bytesOf(start)); err != nil {
		return nil, err
	}
	if err := x.upload(p.to, bytesOf(to)); err != nil {
		return nil, err
	}
	return p, x.upload(p.from, bytesOf(from))
}

// sortAdds sorts the entries of ids that are not below 0 by the row that they name,
// and within it by where they are: to are the different rows, and from[start[k]:
// start[k+1]] the places of to[k].
func sortAdds(ids []int32) (to []int32, start []int64, from []int32) {
	for i, id := range ids {
		if id >= 0 {
			from = append(from, int32(i))
		}
	}
	slices.SortStableFunc(from, func(a, b int32) int { return int(ids[a]) - int(ids[b]) })
	for i, f := range from {
		if i == 0 || ids[f] != to[len(to)-1] {
			to, start = append(to, ids[f]), append(start, int64(i))
		}
	}
	return to, append(start, int64(len(from))), from
}
