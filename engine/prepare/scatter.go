package prepare

import "dorylus/kernels"

// How edges are placed in a big graph; tests make them small.
var (
	// slabEdges is how many edges a scatter holds back: 8 bytes of each twice, 16 with
	// weights.
	slabEdges = 2 << 20
	// scatterRows is from how many rows on edges are held back: below, the rows' places
	// stay in a core's cache anyway.
	scatterRows = 1 << 16
)

// scatterBuckets is into how many ranges of rows a slab is dealt.
const scatterBuckets = 256

// scatter puts edges into the rows of out, each at the next place of its row. Placed one
// by one, the edges of a big graph miss the caches twice, at the row's place and at the
// edge's. So a slab of them is dealt by ranges of rows first, and then placed range by
// range. The edges of a row stay in the order in which they came.
type scatter struct {
	at  []int64 // next place of each row
	out *kernels.CSR

	direct bool
	shift  uint // rows of a range, log2
	slab   dealt
	ranges dealt
}

// dealt is edges: their rows, columns and, where there are any, weights.
type dealt struct {
	row, col []int32
	val      []float32
}

func newDealt(n int, weighted bool) dealt {
	d := dealt{row: make([]int32, n), col: make([]int32, n)}
	if weighted {
		d.val = make([]float32, n)
	}
	return d
}

// newScatter places edges edges.
func newScatter(at []int64, out *kernels.CSR, edges int) *scatter {
	s := &scatter{at: at, out: out}
	size := max(1, min(slabEdges, edges))
	if s.direct = len(at) < scatterRows || edges < slabEdges/2; s.direct {
		return s
	}
	for len(at)>>s.shift >= scatterBuckets {
		s.shift++
	}
	s.slab, s.ranges = newDealt(size, out.Val != nil), newDealt(size, out.Val != nil)
	s.slab.row, s.slab.col, s.slab.val = s.slab.row[:0], s.slab.col[:0], s.slab.val[:0]
	return s
}

// add places an edge, at once or by the next flush. w is not looked at where out has no
// weights.
func (s *scatter) add(row, col int32, w float32) {
	if s.direct {
		to := s.at[row]
		s.at[row]++
		s.out.Col[to] = col
		if s.out.Val != nil {
			s.out.Val[to] = w
		}
		return
	}
	s.slab.row, s.slab.col = append(s.slab.row, row), append(s.slab.col, col)
	if s.out.Val != nil {
		s.slab.val = append(s.slab.val, w)
	}
	if len(s.slab.row) == cap(s.slab.row) {
		s.flush()
	}
}

// flush places what has been held back.
func (s *scatter) flush() {
	var next [scatterBuckets + 1]int
	for _, r := range s.slab.row {
		next[r>>s.shift+1]++
	}
	for b := range scatterBuckets {
		next[b+1] += next[b]
	}
	for i, r := range s.slab.row {
		b := r >> s.shift
		k := next[b]
		next[b]++
		s.ranges.row[k], s.ranges.col[k] = r, s.slab.col[i]
		if s.out.Val != nil {
			s.ranges.val[k] = s.slab.val[i]
		}
	}
	n := len(s.slab.row)
	for i, r := range s.ranges.row[:n] {
		to := s.at[r]
		s.at[r]++
		s.out.Col[to] = s.ranges.col[i]
		if s.out.Val != nil {
			s.out.Val[to] = s.ranges.val[i]
		}
	}
	s.slab.row, s.slab.col, s.slab.val = s.slab.row[:0], s.slab.col[:0], s.slab.val[:0]
}
