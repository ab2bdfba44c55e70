package cuda

import "dorylus/kernels"

// Costs are what a device takes for what it holds and does, for a plan of its memory: by
// the code that takes it.
type Costs struct {
	Precision string
	Products  string // Options.Products
	Limit     int64  // bytes that may be taken of the device
	Alone     bool   // it has to take blocks one at a time: see Settle
}

// Block is BlockBytes.
func (Costs) Block(n int64) int64 { return BlockBytes(n) }

// Graph is what a loaded graph takes.
func (Costs) Graph(g *kernels.CSR) int64 { return arrays(csrCut(g, wideRow, longRow), g, 0) }

// Transpose is what the first SpMMT along a graph adds.
func (Costs) Transpose(g *kernels.CSR) int64 {
	back := &kernels.CSR{Cols: g.Rows(), RowPtr: make([]int64, g.Cols+1), Col: g.Col} // of which the lengths count
	for _, c := range g.Col {
		back.RowPtr[c+1]++
	}
	for c := range g.Cols {
		back.RowPtr[c+1] += back.RowPtr[c]
	}
	return arrays(csrCut(back, wideRow, longRow), back, len(g.Col))
}

// arrays are the bytes of those that bring copies to the device.
func arrays(c csr, g *kernels.CSR, perm int) (sum int64) {
	for _, n := range []int{
		8 * len(g.RowPtr), 4 * len(g.Col), 4 * len(g.Val), 8 * perm, 4 * len(c.wide.rows),
		4 * len(c.long.rows), 8 * len(c.long.chunks), 4 * len(c.parts.rows), 8 * len(c.parts.chunks),
	} {
		if n > 0 {
			sum += BlockBytes(int64(n))
		}
	}
	return sum
}

// Product is the scratch memory of a product.
func (Costs) Product(t kernels.Trans, m, n, k int) int64 {
	slices, _ := slicesOf(t, m, n, k)
	if slices == 1 {
		return 0
	}
	return 4 * int64(slices) * int64(m) * int64(n)
}

// Together says that the device sums over blocks: its streams are kernels.BlockSummers.
func (c Costs) Together() bool { return !c.Alone && c.Products != CUBLASProducts }

// BlockProduct is the scratch memory of a BlockGEMM that makes m x n values, and the lists
// that the device keeps.
func (Costs) BlockProduct(b *kernels.Blocks, m, n int) (int64, [][]int32) {
	s := blockProduct(b, m, n)
	return s.scratch(), s.lists(b)
}

// BlockRows is that of a BlockColSum or BlockHeadDotGrad.
func (Costs) BlockRows(b *kernels.Blocks, m, n int) (int64, [][]int32) {
	s := blockRows(b, m, n)
	return s.scratch(), s.lists(b)
}

// BlockLosses is that of the losses of rows by block.
func (Costs) BlockLosses(b *kernels.Blocks, rows int) (int64, [][]int32) {
	return lossScratch(rows, b.Len()), [][]int32{b.Cuts}
}

// Losses is the scratch memory of the losses of rows.
func (Costs) Losses(rows int) int64 { return lossScratch(rows, 1) }

// Offsets is what so many row offsets take.
func (Costs) Offsets(n int) int64 { return BlockBytes(8 * int64(n)) }

// Gather is that of a gather: the chunks of long rows and, in bf16, a copy of the sources.
func (c Costs) Gather(g *kernels.CSR, cols int, chunks bool) (sum int64) {
	least, size := int64(longRow), int64(edgeChunk)
	if chunks {
		least, size = longPart+1, partSize
	}
	l := longRowsOf(g.RowPtr, least, size)
	if n := int64(len(l.rows)); n > 0 {
		row := 4 * int64(kernels.PadCols(partCols(cols)))
		longest := int64(0)
		for i := range len(l.rows) {
			longest = max(longest, l.count(i, i+1))
		}
		sum = min(row*(l.count(0, len(l.rows))+n), max(2*partBytes, row*(longest+1)))
	}
	if bytes := 2 * int64((cols+7)/8*8) * int64(g.Cols); c.Precision == "bf16" && !chunks && g.Edges() >= bf16Edges*g.Cols && bytes <= c.Limit/bf16Share {
		sum += bytes
	}
	return sum
}
