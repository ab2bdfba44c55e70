package paper

import "dorylus/kernels"

// Costs are what a real device takes for what it holds and does.
type Costs interface {
	// Block is what an allocation of n bytes takes.
	Block(n int64) int64
	// Graph is what a graph takes, and Transpose what the first SpMMT along it adds.
	Graph(g *kernels.CSR) int64
	Transpose(g *kernels.CSR) int64
	// Product is the scratch memory of a product of m x n values with k terms each.
	Product(t kernels.Trans, m, n, k int) int64
	// Together says that the device sums over blocks in one op. BlockProduct is the scratch
	// memory of such a product of m x n values, and the lists of blocks that are kept from
	// then on; BlockRows that of a sum over rows.
	Together() bool
	BlockProduct(b *kernels.Blocks, m, n int) (scratch int64, lists [][]int32)
	BlockRows(b *kernels.Blocks, m, n int) (scratch int64, lists [][]int32)
	// Offsets is what a device keeps of so many row offsets, with the columns.
	Offsets(n int) int64
	// BlockLosses is that of losses of rows and their sums by block, Losses without blocks.
	BlockLosses(b *kernels.Blocks, rows int) (scratch int64, lists [][]int32)
	Losses(rows int) int64
	// Gather is that of a gather of so many columns along g, chunks that of one which
	// takes long rows in pieces of so few edges as attention and maximum do.
	Gather(g *kernels.CSR, cols int, chunks bool) int64
}

// bare takes what there is, and nothing else.
type bare struct{}

func (bare) Block(n int64) int64 { return n }
func (bare) Graph(g *kernels.CSR) int64 {
	return 8*int64(len(g.RowPtr)) + 4*int64(len(g.Col)) + 4*int64(len(g.Val))
}
func (bare) Transpose(*kernels.CSR) int64                              { return 0 }
func (bare) Product(kernels.Trans, int, int, int) int64                { return 0 }
func (bare) Together() bool                                            { return true }
func (bare) BlockProduct(*kernels.Blocks, int, int) (int64, [][]int32) { return 0, nil }
func (bare) BlockRows(*kernels.Blocks, int, int) (int64, [][]int32)    { return 0, nil }
func (bare) Offsets(int) int64                                         { return 0 }
func (bare) BlockLosses(*kernels.Blocks, int) (int64, [][]int32)       { return 0, nil }
func (bare) Losses(int) int64                                          { return 0 }
func (bare) Gather(*kernels.CSR, int, bool) int64                      { return 0 }

// chunking is a kind of gather along a graph.
type chunking struct {
	cols   int
	chunks bool
}

// product counts the scratch memory of a product.
func (s *stream) product(dst, a *kernels.Mat, t kernels.Trans) {
	k := a.Cols
	if t == kernels.TN {
		k = a.Rows
	}
	n := s.c.costs.Product(t, dst.Rows, dst.Cols, k)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.scratch = max(s.c.scratch, n)
}

// along counts that of a gather.
func (s *stream) along(g kernels.Graph, cols int, chunks bool) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	r := g.(*graph)
	key := chunking{cols, chunks}
	n, known := r.chunks[key]
	if !known {
		n = s.c.costs.Gather(r.of, cols, chunks)
		r.chunks[key] = n
	}
	s.c.scratch = max(s.c.scratch, n)
}

// back counts the transpose of a graph, once.
func (s *stream) back(g kernels.Graph) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if r := g.(*graph); !r.back {
		r.back = true
		n := s.c.costs.Transpose(r.of)
		r.takes += n
		s.c.hold(kind{name: Edges}, n)
	}
}
