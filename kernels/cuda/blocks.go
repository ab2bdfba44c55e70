package cuda

import (
	"slices"

	"dorylus/kernels"
	"dorylus/kernels/cuda/internal/watch"
)

// The lists of kernels.Blocks are those of a pass and come again with every epoch: the
// device keeps what it has been given, by what is in it.
const maxBlockLists = 1024

// numbers is where the device has a copy of v, which it keeps.
func (x *runner) numbers(v []int32) (address, error) {
	key := string(bytesOf(v))
	if a, ok := x.lists[key]; ok {
		return a, nil
	}
	if len(x.lists) >= maxBlockLists { // what reads them is queued before what gets their memory
		for _, a := range x.lists {
			x.pool.put(a)
		}
		clear(x.lists)
	}
	a, err := x.pool.get(x.c, max(4*int64(len(v)), 1), "a list of blocks")
	if err != nil {
		return 0, err
	}
	if err := x.upload(a, bytesOf(v)); err != nil {
		x.pool.put(a)
		return 0, err
	}
	x.lists[key] = a
	return a, nil
}

// cloned is b as an op may keep it until it runs.
func cloned(b *kernels.Blocks) kernels.Blocks {
	return kernels.Blocks{Cuts: slices.Clone(b.Cuts), Leaves: slices.Clone(b.Leaves)}
}

// most is the largest that f gives for the rows of a block.
func most(b kernels.Blocks, f func(rows int) int) int {
	n := 0
	for i := range b.Len() {
		n = max(n, f(b.Span(i).Len()))
	}
	return n
}

// blockBytes is about how much scratch memory sums over blocks take.
const blockBytes = 64 << 20

// groups cuts blocks of so many bytes of scratch memory each into runs that are below a
// node of the tree; it gives their ends, and the numbers of the nodes.
func (x *runner) groups(b kernels.Blocks, bytes int64) (ends []int, nodes []int32) {
	budget, level := min(blockBytes, x.d.pool.limit/64), 0
	if watch.Parts != 0 {
		budget = watch.Parts
	}
	for bytes<<(level+1) <= budget && level < 20 {
		level++
	}
	for i := 0; i < b.Len(); {
		node := b.Leaves[i] >> level
		for i < b.Len() && b.Leaves[i]>>level == node {
			i++
		}
		ends, nodes = append(ends, i), append(nodes, node)
	}
	return ends, nodes
}

// sumBlocks sets dst to the sum over blocks of m x n values each: part leaves those of the
// blocks [lo,hi), whose cuts begin at an address, packed in to. bytes is the scratch memory that part asks for, per block.
func (x *runner) sumBlocks(dst mat, b kernels.Blocks, m, n int, bytes int64, part func(to, cuts address, lo, hi int) error) error {
	size := 4 * int64(m) * int64(n)
	ends, nodes := x.groups(b, bytes+size)
	cuts, err := x.numbers(b.Cuts)
	if err != nil {
		return err
	}
	leaves, err := x.numbers(b.Leaves)
	if err != nil {
		return err
	}
	tree := func(dst mat, part, leaves address, blocks int) error {
		return x.each("dk_block_tree", m, n, dst, part, leaves, int32(blocks), int32(m), int32(n), shiftOf(n))
	}
	most, lo := 0, 0
	for _, hi := range ends {
		most, lo = max(most, hi-lo), hi
	}
	sums, err := x.scratch(size * int64(most))
	if err != nil {
		return err
	}
	of := dst
	var nodeSums address
	if len(ends) > 1 {
		if nodeSums, err = x.scratch(size * int64(len(ends))); err != nil {
			return err
		}
	}
	lo = 0
	for i, hi := range ends {
		if len(ends) > 1 {
			of = mat{nodeSums + address(size*int64(i)), int64(n), m, n}
		}
		used := x.arena.mark()
		if err := part(sums, cuts+address(4*lo), lo, hi); err != nil {
			return err
		}
		x.arena.release(used) // what comes next runs behind it
		if err := tree(of, sums, leaves+address(4*lo), hi-lo); err != nil {
			return err
		}
		lo = hi
	}
	if len(ends) == 1 {
		return nil
	}
	list, err := x.numbers(nodes)
	if err != nil {
		return err
	}
	return tree(dst, nodeSums, list, len(nodes))
}
