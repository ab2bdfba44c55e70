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
func cloned(b *kernels.Blocks) *kernels.Blocks {
	return &kernels.Blocks{Cuts: slices.Clone(b.Cuts), Leaves: slices.Clone(b.Leaves)}
}

// most is the largest that f gives for the rows of a block.
func most(b *kernels.Blocks, f func(rows int) int) int {
	n := 0
	for i := range b.Len() {
		n = max(n, f(b.Span(i).Len()))
	}
	return n
}

// blockBytes is about how much scratch memory sums over blocks take. It is the same for
// all limits: a plan of memory holds for any that is as large.
const blockBytes = 64 << 20

// blockSums is how sums over blocks, of m x n values each, are made: in groups of blocks
// that are below a node of the tree, whose sums are then added up. What it takes is planned
// by Costs before a run.
type blockSums struct {
	m, n  int
	slots int   // parts that a block's sum is made in
	part  int64 // bytes of scratch memory that they take per block, 0: they are none

	ends  []int   // of the groups
	nodes []int32 // their numbers in the tree
	most  int     // blocks of a group
}

// group cuts the blocks.
func (s blockSums) group(b *kernels.Blocks) blockSums {
	budget, level := int64(blockBytes), 0
	if watch.Parts != 0 {
		budget = watch.Parts
	}
	for (s.part+s.size())<<(level+1) <= budget && level < 20 {
		level++
	}
	for lo := 0; lo < b.Len(); {
		node, hi := b.Leaves[lo]>>level, lo
		for hi < b.Len() && b.Leaves[hi]>>level == node {
			hi++
		}
		s.ends, s.nodes, s.most = append(s.ends, hi), append(s.nodes, node), max(s.most, hi-lo)
		lo = hi
	}
	return s
}

// size is the bytes of a sum.
func (s *blockSums) size() int64 { return 4 * int64(s.m) * int64(s.n) }

// several says that there is more than one group.
func (s *blockSums) several() bool { return len(s.ends) > 1 }

// scratch is all of the scratch memory.
func (s *blockSums) scratch() int64 {
	sum := scratchBytes(s.size() * int64(s.most))
	if s.several() {
		sum += scratchBytes(s.size() * int64(len(s.ends)))
	}
	if s.part > 0 {
		sum += scratchBytes(s.part * int64(s.most))
	}
	return sum
}

// lists are those that numbers is asked for.
func (s *blockSums) lists(b *kernels.Blocks) [][]int32 {
	if !s.several() {
		return [][]int32{b.Cuts, b.Leaves}
	}
	return [][]int32{b.Cuts, b.Leaves, s.nodes}
}

// sumBlocks sets dst to the sum over blocks: part leaves those of the blocks [lo,hi), whose
// cuts begin at an address, packed in to.
func (x *runner) sumBlocks(dst mat, b *kernels.Blocks, s blockSums, part func(to, cuts address, lo, hi int) error) error {
	if err := x.arena.reserve(x.c, x.pool, s.scratch()); err != nil {
		return err
	}
	var lists [3]address
	for i, v := range s.lists(b) {
		at, err := x.numbers(v)
		if err != nil {
			return err
		}
		lists[i] = at
	}
	cuts, leaves := lists[0], lists[1]
	tree := func(dst mat, part, leaves address, blocks int) error {
		return x.each("dk_block_tree", s.m, s.n, dst, part, leaves, int32(blocks), int32(s.m), int32(s.n), shiftOf(s.n))
	}
	sums, err := x.scratch(s.size() * int64(s.most))
	if err != nil {
		return err
	}
	of := dst
	var nodeSums address
	if s.several() {
		if nodeSums, err = x.scratch(s.size() * int64(len(s.ends))); err != nil {
			return err
		}
	}
	lo := 0
	for i, hi := range s.ends {
		if s.several() {
			of = mat{nodeSums + address(s.size()*int64(i)), int64(s.n), s.m, s.n}
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
	if !s.several() {
		return nil
	}
	return tree(dst, nodeSums, lists[2], len(s.nodes))
}
