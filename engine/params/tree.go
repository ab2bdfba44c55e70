package params

import (
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Sums over blocks are made in a fixed binary tree: the leaves are the blocks in
// order, a node is its left child plus its right one, and where there is no right
// one the left passes through. So the bits of a sum depend on the number of blocks
// alone, whoever adds what and when.

// shape is the layout of a tree over a number of leaves.
type shape struct {
	counts []int // nodes per level, the leaves first; the last is 1
	base   []int // index of each level's first node
	nodes  int
}

func newShape(leaves int) shape {
	var s shape
	for n := leaves; ; n = (n + 1) / 2 {
		s.base = append(s.base, s.nodes)
		s.counts = append(s.counts, n)
		s.nodes += n
		if n == 1 {
			return s
		}
	}
}

// node is the k-th node of a level.
type node struct{ level, k int }

// tree holds the values that wait for their sibling. A leaf counts once.
type tree[T any] struct {
	shape   shape
	arrived []bool // by leaf
	full    []bool // by node: value waits there
	value   []T
}

func newTree[T any](s shape) *tree[T] {
	return &tree[T]{shape: s, arrived: make([]bool, s.counts[0]), full: make([]bool, s.nodes), value: make([]T, s.nodes)}
}

// over is the node over the leaves [lo,lo+span), and whether there is one. A node with
// the leaves of its left child alone counts as that.
func (s shape) over(lo, span int) (node, bool) {
	leaves := s.counts[0]
	if lo < 0 || lo >= leaves || span < 1 || span > leaves-lo {
		return node{}, false
	}
	level := 0
	for 1<<level < span {
		level++
	}
	k := lo >> level
	return node{level, k}, k<<level == lo && min((k+1)<<level, leaves) == lo+span
}

// Subtrees cuts the blocks [lo,hi) into the fewest runs of 2ⁿ blocks each of which is
// all that is below a node of the tree, however many blocks there are in all: what may be
// added up apart from the others. The sum of a run is made like that of all blocks: in
// pairs from its first block on.
func Subtrees(lo, hi int) []task.Range {
	var runs []task.Range
	for lo < hi {
		span := 1
		for lo&span == 0 && lo+2*span <= hi {
			span *= 2
		}
		runs = append(runs, task.Range{Lo: lo, Hi: lo + span})
		lo += span
	}
	return runs
}

// SubtreesOf is Subtrees in a graph of so many blocks: a run that ends with the last block
// may be below a node that has no more blocks, and so of any number.
func SubtreesOf(lo, hi, blocks int) []task.Range {
	full := 1
	for full < blocks {
		full *= 2
	}
	if hi != blocks || lo == hi {
		return Subtrees(lo, hi)
	}
	runs := Subtrees(lo, full)
	for i, r := range runs {
		if r.Hi >= hi {
			runs[i].Hi = hi
			return runs[:i+1]
		}
	}
	return runs
}

// claim says whether leaf k arrives for the first time.
func (t *tree[T]) claim(k int) bool {
	first, _ := t.claimSpan(k, 1)
	return first
}

// claimSpan says whether the leaves [lo,lo+span) arrive for the first time. mixed says
// that only some of them do, and claims none.
func (t *tree[T]) claimSpan(lo, span int) (first, mixed bool) {
	first = !t.arrived[lo]
	for _, arrived := range t.arrived[lo : lo+span] {
		if arrived == first {
			return false, true
		}
	}
	for k := range span {
		t.arrived[lo+k] = true
	}
	return first, false
}

// span are the leaves below a node.
func (s shape) span(n node) kernels.Span {
	return kernels.Span{Lo: n.k << n.level, Hi: min((n.k+1)<<n.level, s.counts[0])}
}

// What settle found.
type settled int

const (
	waits  settled = iota // the value waits for its sibling, the caller is through
	paired                // the caller adds left and right and settles the sum
	rooted                // left is a sum with which nothing of own is to be added
)

// settle brings v, the sum of node n, as far up as it can go alone among the leaves of own:
// a node whose sibling has others is a root. If it is paired, n becomes the node that
// left + right is the sum of.
func (t *tree[T]) settle(n *node, v T, own kernels.Span) (left, right T, what settled) {
	var none T
	for n.level < len(t.shape.counts)-1 {
		sibling := node{n.level, n.k ^ 1}
		if sibling.k >= t.shape.counts[n.level] { // v passes through
			n.level, n.k = n.level+1, n.k>>1
			continue
		}
		if s := t.shape.span(sibling); s.Lo < own.Lo || s.Hi > own.Hi {
			return v, none, rooted
		}
		at := t.shape.base[n.level] + sibling.k
		if !t.full[at] {
			at = t.shape.base[n.level] + n.k
			t.full[at], t.value[at] = true, v
			return none, none, waits
		}
		other := t.value[at]
		t.full[at], t.value[at] = false, none
		left, right = v, other
		if n.k&1 == 1 {
			left, right = other, v
		}
		n.level, n.k = n.level+1, n.k>>1
		return left, right, paired
	}
	return v, none, rooted
}
