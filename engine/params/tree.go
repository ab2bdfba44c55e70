package params

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

// claim says whether leaf k arrives for the first time.
func (t *tree[T]) claim(k int) bool {
	first := !t.arrived[k]
	t.arrived[k] = true
	return first
}

// What settle found.
type settled int

const (
	waits  settled = iota // the value waits for its sibling, the caller is through
	paired                // the caller adds left and right and settles the sum
	rooted                // left is the sum of all
)

// settle brings v, the sum of node n, as far up as it can go alone. If it is
// paired, n becomes the node that left + right is the sum of.
func (t *tree[T]) settle(n *node, v T) (left, right T, what settled) {
	var none T
	for {
		if n.level == len(t.shape.counts)-1 {
			return v, none, rooted
		}
		sibling := n.k ^ 1
		if sibling < t.shape.counts[n.level] {
			at := t.shape.base[n.level] + sibling
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
		n.level, n.k = n.level+1, n.k>>1
	}
}
