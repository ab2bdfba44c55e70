//go:build cgo && amd64

package native

/*
#cgo CFLAGS: -O3 -std=c11 -Wall -Wextra -Werror
#cgo LDFLAGS: -lm
#include <stdlib.h>
#include "call.h"
*/
import "C"

import (
	"sync"
	"unsafe"
)

// Built says whether native code is in this binary.
const Built = true

// Probe says whether this processor and its operating system can run i.
func Probe(i ISA) bool { return C.dk_probe()&(1<<uint(i)) != 0 }

// CPUName is the processor's name for itself.
func CPUName() string {
	var brand [49]C.char
	C.dk_cpu_name(&brand[0])
	return C.GoString(&brand[0])
}

// Table is the set of functions of one instruction set. It is read-only and safe
// for any number of goroutines.
type Table struct {
	isa ISA
	t   *C.dk_table
}

// tables holds one C table per instruction set for the life of the process.
var tables [3]struct {
	once sync.Once
	t    *Table
}

// Open is the table of i, which must be one that Probe allows.
func Open(i ISA) *Table {
	e := &tables[i]
	e.once.Do(func() {
		t := (*C.dk_table)(C.calloc(1, C.sizeof_dk_table))
		C.dk_fill(t, C.int(i))
		e.t = &Table{isa: i, t: t}
	})
	return e.t
}

// ISA is the instruction set of t.
func (t *Table) ISA() ISA { return t.isa }

func f32(s []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }
func i32(s []int32) *C.int32_t { return (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(s))) }
func i64(s []int64) *C.int64_t { return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(s))) }
func u16(s []uint16) *C.uint16_t {
	return (*C.uint16_t)(unsafe.Pointer(unsafe.SliceData(s)))
}

func cbool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// SpMM is the gather of spmm_body.h.
func (t *Table) SpMM(g *Gather) {
	raceGather(g)
	var ep Epilogue
	if g.Ep != nil {
		ep = *g.Ep
	}
	C.dk_call_spmm(t.t, i64(g.RowPtr), i32(g.Col), f32(g.W), i32(g.Tile), C.int64_t(g.TileLD), C.int64_t(g.Tiles),
		C.int64_t(g.TileRows), C.int64_t(g.Sources), C.int64_t(g.Group), C.int64_t(g.Panel), f32(g.Pack), f32(g.RS), f32(g.CS), C.int64_t(cbool(g.SelfOn)), i32(g.SelfCol),
		f32(g.SelfW), f32(g.X), C.int64_t(g.LDX), f32(g.Y), C.int64_t(g.LDY), C.int64_t(g.Cols), C.int64_t(g.Lo),
		C.int64_t(g.Hi), cbool(g.Ep != nil), f32(ep.Bias), i32(ep.IDs), C.uint64_t(ep.Key),
		C.uint32_t(ep.Threshold), cbool(ep.Drop), C.float(ep.KeepScale), C.int(ep.Act))
}

// SpMMT is the scatter of spmmt_body.h into n rows of y.
func (t *Table) SpMMT(rowPtr []int64, col []int32, w, x []float32, ldx int, y []float32, ldy, n, f, lo, hi int) {
	raceRead(x, ldx, f, lo, hi)
	raceWrite(y, ldy, f, 0, n)
	raceEdges(w, rowPtr, lo, hi, false)
	C.dk_call_spmmt(t.t, i64(rowPtr), i32(col), f32(w), f32(x), C.int64_t(ldx), f32(y), C.int64_t(ldy),
		C.int64_t(n), C.int64_t(f), C.int64_t(lo), C.int64_t(hi))
}

// SDDMM sets out[e] to the inner product of edge e's two rows.
func (t *Table) SDDMM(rowPtr []int64, col []int32, x []float32, ldx int, y []float32, ldy int, out []float32, f, lo, hi int) {
	raceSources(rowPtr, col, x, ldx, f, lo, hi)
	raceRead(y, ldy, f, lo, hi)
	raceEdges(out, rowPtr, lo, hi, true)
	C.dk_call_sddmm(t.t, i64(rowPtr), i32(col), f32(x), C.int64_t(ldx), f32(y), C.int64_t(ldy), f32(out),
		C.int64_t(f), C.int64_t(lo), C.int64_t(hi))
}

// GAT is attention's gather: Y and, into Out, the logarithms of the sums.
func (t *Table) GAT(g *Attend) { t.attend(0, g) }

// GATBackDst is its gradient along the graph: dad into Out, dot into Out2.
func (t *Table) GATBackDst(g *Attend) { t.attend(1, g) }

// GATBackSrc is its gradient along the transpose: dx into Y, das into Out.
func (t *Table) GATBackSrc(g *Attend) { t.attend(2, g) }

func (t *Table) attend(part C.int, g *Attend) {
	raceAttend(g, part == 2)
	var ep Epilogue
	if g.Ep != nil {
		ep = *g.Ep
	}
	d := g.Drop
	C.dk_call_gat(t.t, part, i64(g.RowPtr), i32(g.Col), f32(g.W), C.int64_t(cbool(g.SelfOn)), i32(g.SelfCol),
		f32(g.SelfW), C.int64_t(g.Heads), C.int64_t(g.D), C.float(g.Slope), cbool(d.Drop), C.uint64_t(d.Key),
		C.uint32_t(d.Threshold), C.float(d.KeepScale), i32(g.NearIDs), i32(g.FarIDs), f32(g.Near),
		C.int64_t(g.LDNear), f32(g.Far), C.int64_t(g.LDFar), f32(g.LSE), C.int64_t(g.LDLSE), f32(g.Dot),
		C.int64_t(g.LDDot), f32(g.X), C.int64_t(g.LDX), f32(g.Own), C.int64_t(g.LDOwn), f32(g.Y),
		C.int64_t(g.LDY), f32(g.Out), C.int64_t(g.LDOut), f32(g.Out2), C.int64_t(g.LDOut2), C.int64_t(g.Lo),
		C.int64_t(g.Hi), cbool(g.Ep != nil), f32(ep.Bias), i32(ep.IDs), C.uint64_t(ep.Key),
		C.uint32_t(ep.Threshold), cbool(ep.Drop), C.float(ep.KeepScale), C.int(ep.Act))
}

// EdgeDropout sets out[e] = drop(w[e]); of d only the dropout counts.
func (t *Table) EdgeDropout(rowPtr []int64, col []int32, w, out []float32, d *Epilogue, lo, hi int) {
	raceEdges(w, rowPtr, lo, hi, false)
	raceEdges(out, rowPtr, lo, hi, true)
	C.dk_call_edge_dropout(t.t, i64(rowPtr), i32(col), f32(w), f32(out), i32(d.IDs), C.uint64_t(d.Key),
		C.uint32_t(d.Threshold), cbool(d.Drop), C.float(d.KeepScale), C.int64_t(lo), C.int64_t(hi))
}

// Forward sets y = epilogue(x) in rows [lo,hi).
func (t *Table) Forward(ep *Epilogue, x []float32, ldx int, y []float32, ldy, f, lo, hi int) {
	raceRead(x, ldx, f, lo, hi)
	raceWrite(y, ldy, f, lo, hi)
	raceRead(ep.Bias, f, f, 0, 1)
	C.dk_call_forward(t.t, f32(ep.Bias), i32(ep.IDs), C.uint64_t(ep.Key), C.uint32_t(ep.Threshold), cbool(ep.Drop),
		C.float(ep.KeepScale), C.int(ep.Act), f32(x), C.int64_t(ldx), f32(y), C.int64_t(ldy), C.int64_t(f),
		C.int64_t(lo), C.int64_t(hi))
}

// Backward sets dx = dy * act'(pre) * drop' in rows [lo,hi).
func (t *Table) Backward(ep *Epilogue, dy []float32, lddy int, y []float32, ldy int, dx []float32, lddx, f, lo, hi int) {
	raceRead(dy, lddy, f, lo, hi)
	raceRead(y, ldy, f, lo, hi)
	raceWrite(dx, lddx, f, lo, hi)
	C.dk_call_backward(t.t, i32(ep.IDs), C.uint64_t(ep.Key), C.uint32_t(ep.Threshold), cbool(ep.Drop),
		C.float(ep.KeepScale), C.int(ep.Act), f32(dy), C.int64_t(lddy), f32(y), C.int64_t(ldy), f32(dx),
		C.int64_t(lddx), C.int64_t(f), C.int64_t(lo), C.int64_t(hi))
}

// ColSum sets out to the sum of rows [lo,hi), in row order.
func (t *Table) ColSum(x []float32, ldx int, out []float32, f, lo, hi int) {
	raceRead(x, ldx, f, lo, hi)
	raceWrite(out, f, f, 0, 1)
	C.dk_call_colsum(t.t, f32(x), C.int64_t(ldx), f32(out), C.int64_t(f), C.int64_t(lo), C.int64_t(hi))
}

// Xent is the loss over rows [lo,hi), with the gradient in grad unless it is nil.
func (t *Table) Xent(logits []float32, ldl int, grad []float32, ldg int, labels []int32, classW []float32, scale float32, f, lo, hi int) float64 {
	raceRead(logits, ldl, f, lo, hi)
	raceWrite(grad, ldg, f, lo, hi)
	raceRead(classW, f, f, 0, 1)
	return float64(C.dk_call_xent(t.t, f32(logits), C.int64_t(ldl), f32(grad), C.int64_t(ldg), i32(labels),
		f32(classW), C.float(scale), C.int64_t(f), C.int64_t(lo), C.int64_t(hi)))
}

// Add sets y = a + b.
func (t *Table) Add(a []float32, lda int, b []float32, ldb int, y []float32, ldy, rows, f int) {
	raceRead(a, lda, f, 0, rows)
	raceRead(b, ldb, f, 0, rows)
	raceWrite(y, ldy, f, 0, rows)
	C.dk_call_add(t.t, f32(a), C.int64_t(lda), f32(b), C.int64_t(ldb), f32(y), C.int64_t(ldy), C.int64_t(rows),
		C.int64_t(f))
}

// Adam updates p, m and v in place from g.
func (t *Table) Adam(p []float32, ldp int, g []float32, ldg int, m []float32, ldm int, v []float32, ldv, rows, f int, h AdamStep) {
	raceWrite(p, ldp, f, 0, rows)
	raceRead(g, ldg, f, 0, rows)
	raceWrite(m, ldm, f, 0, rows)
	raceWrite(v, ldv, f, 0, rows)
	C.dk_call_adam(t.t, f32(p), C.int64_t(ldp), f32(g), C.int64_t(ldg), f32(m), C.int64_t(ldm), f32(v),
		C.int64_t(ldv), C.int64_t(rows), C.int64_t(f), C.float(h.LRStep), C.float(h.InvSqrtBC2), C.float(h.Beta1),
		C.float(h.Beta2), C.float(h.OneBeta1), C.float(h.OneBeta2), C.float(h.Eps), C.float(h.L2),
		C.float(h.Decay), cbool(h.Decoupled))
}

// SGD updates p in place from g, and the momentum buffer m unless it is nil.
func (t *Table) SGD(p []float32, ldp int, g []float32, ldg int, m []float32, ldm, rows, f int, h SGDStep) {
	raceWrite(p, ldp, f, 0, rows)
	raceRead(g, ldg, f, 0, rows)
	raceWrite(m, ldm, f, 0, rows)
	C.dk_call_sgd(t.t, f32(p), C.int64_t(ldp), f32(g), C.int64_t(ldg), f32(m), C.int64_t(ldm), C.int64_t(rows),
		C.int64_t(f), C.float(h.LR), C.float(h.Momentum), C.float(h.L2), cbool(h.First))
}

// GatherRows sets row i of y to row ids[i] of x.
func (t *Table) GatherRows(x []float32, ldx int, ids []int32, y []float32, ldy, f int) {
	raceRows(x, ldx, f, ids, false)
	raceWrite(y, ldy, f, 0, len(ids))
	C.dk_call_gather_rows(t.t, f32(x), C.int64_t(ldx), i32(ids), C.int64_t(len(ids)), f32(y), C.int64_t(ldy),
		C.int64_t(f))
}

// ScatterRows sets row ids[i] of y to row i of x.
func (t *Table) ScatterRows(x []float32, ldx int, ids []int32, y []float32, ldy, f int) {
	raceRead(x, ldx, f, 0, len(ids))
	raceRows(y, ldy, f, ids, true)
	C.dk_call_scatter_rows(t.t, f32(x), C.int64_t(ldx), i32(ids), C.int64_t(len(ids)), f32(y), C.int64_t(ldy),
		C.int64_t(f))
}

// ToBF16 rounds rows of x into y, without padding.
func (t *Table) ToBF16(x []float32, ldx int, y []uint16, rows, f int) {
	raceRead(x, ldx, f, 0, rows)
	raceHalf(y, rows*f, true)
	C.dk_call_to_bf16(t.t, f32(x), C.int64_t(ldx), u16(y), C.int64_t(rows), C.int64_t(f))
}

// FromBF16 widens x, without padding, into rows of y.
func (t *Table) FromBF16(x []uint16, y []float32, ldy, rows, f int) {
	raceHalf(x, rows*f, false)
	raceWrite(y, ldy, f, 0, rows)
	C.dk_call_from_bf16(t.t, u16(x), f32(y), C.int64_t(ldy), C.int64_t(rows), C.int64_t(f))
}

// GEMM sets c = op(a)·op(b), c of m x n, with k terms per value, or adds that to c.
// At most one of a and b is transposed. It stands in where OpenBLAS is not linked.
func (t *Table) GEMM(transA, transB, add bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	C.dk_call_gemm(t.t, cbool(transA), cbool(transB), cbool(add), C.int64_t(m), C.int64_t(n), C.int64_t(k), f32(a),
		C.int64_t(lda), f32(b), C.int64_t(ldb), f32(c), C.int64_t(ldc))
}

// SpMMMax sets y to the maximum over each row's edges of positive weight, and arg,
// unless it is nil, to the bits of the source that it came from.
func (t *Table) SpMMMax(rowPtr []int64, col []int32, w, x []float32, ldx int, y []float32, ldy int, arg []float32, lda, f, lo, hi int) {
	raceEdges(w, rowPtr, lo, hi, false)
	raceSources(rowPtr, col, x, ldx, f, lo, hi)
	raceWrite(y, ldy, f, lo, hi)
	raceWrite(arg, lda, f, lo, hi)
	C.dk_call_spmm_max(t.t, i64(rowPtr), i32(col), f32(w), f32(x), C.int64_t(ldx), f32(y), C.int64_t(ldy), f32(arg),
		C.int64_t(lda), C.int64_t(f), C.int64_t(lo), C.int64_t(hi))
}

// SpMMMaxBack sums, for each row, dy where arg names the row.
func (t *Table) SpMMMaxBack(rowPtr []int64, col []int32, dy []float32, lddy int, arg []float32, lda int, dx []float32, lddx, f, lo, hi int) {
	raceSources(rowPtr, col, dy, lddy, f, lo, hi)
	raceSources(rowPtr, col, arg, lda, f, lo, hi)
	raceWrite(dx, lddx, f, lo, hi)
	C.dk_call_spmm_max_back(t.t, i64(rowPtr), i32(col), f32(dy), C.int64_t(lddy), f32(arg), C.int64_t(lda), f32(dx),
		C.int64_t(lddx), C.int64_t(f), C.int64_t(lo), C.int64_t(hi))
}

// LayerNorm normalises rows of x into y; stat gets mean and inverse deviation.
func (t *Table) LayerNorm(x []float32, ldx int, gamma, beta []float32, eps float32, y []float32, ldy int, stat []float32, lds, rows, f int) {
	raceRead(x, ldx, f, 0, rows)
	raceRow(gamma, 0, f, false)
	raceRow(beta, 0, f, false)
	raceWrite(y, ldy, f, 0, rows)
	raceWrite(stat, lds, 2, 0, rows)
	C.dk_call_layer_norm(t.t, f32(x), C.int64_t(ldx), f32(gamma), f32(beta), C.float(eps), f32(y), C.int64_t(ldy),
		f32(stat), C.int64_t(lds), C.int64_t(rows), C.int64_t(f))
}

// LayerNormBack is LayerNorm's gradient.
func (t *Table) LayerNormBack(dy []float32, lddy int, x []float32, ldx int, stat []float32, lds int, gamma, dx []float32, lddx int, dgamma, dbeta []float32, rows, f int) {
	raceRead(dy, lddy, f, 0, rows)
	raceRead(x, ldx, f, 0, rows)
	raceRead(stat, lds, 2, 0, rows)
	raceRow(gamma, 0, f, false)
	raceWrite(dx, lddx, f, 0, rows)
	raceRow(dgamma, 0, f, true)
	raceRow(dbeta, 0, f, true)
	C.dk_call_layer_norm_back(t.t, f32(dy), C.int64_t(lddy), f32(x), C.int64_t(ldx), f32(stat), C.int64_t(lds),
		f32(gamma), f32(dx), C.int64_t(lddx), f32(dgamma), f32(dbeta), C.int64_t(rows), C.int64_t(f))
}

// ColMoments sets mean and square to each column's mean and squared distances.
func (t *Table) ColMoments(x []float32, ldx int, mean, square []float32, rows, f int) {
	raceRead(x, ldx, f, 0, rows)
	raceRow(mean, 0, f, true)
	raceRow(square, 0, f, true)
	C.dk_call_col_moments(t.t, f32(x), C.int64_t(ldx), f32(mean), f32(square), C.int64_t(rows), C.int64_t(f))
}

// ColAffine sets out = a·x + b·y + d, without y if it is nil.
func (t *Table) ColAffine(x []float32, ldx int, y []float32, ldy int, a, b, d, out []float32, ldo, rows, f int) {
	raceRead(x, ldx, f, 0, rows)
	raceRead(y, ldy, f, 0, rows)
	raceRow(a, 0, f, false)
	raceRow(b, 0, f, false)
	raceRow(d, 0, f, false)
	raceWrite(out, ldo, f, 0, rows)
	C.dk_call_col_affine(t.t, f32(x), C.int64_t(ldx), f32(y), C.int64_t(ldy), f32(a), f32(b), f32(d), f32(out),
		C.int64_t(ldo), C.int64_t(rows), C.int64_t(f))
}

// ColDot sets out to the sum of products of each column.
func (t *Table) ColDot(a []float32, lda int, b []float32, ldb int, out []float32, rows, f int) {
	raceRead(a, lda, f, 0, rows)
	raceRead(b, ldb, f, 0, rows)
	raceRow(out, 0, f, true)
	C.dk_call_col_dot(t.t, f32(a), C.int64_t(lda), f32(b), C.int64_t(ldb), f32(out), C.int64_t(rows), C.int64_t(f))
}

// Dot is the sum of products of all values.
func (t *Table) Dot(a []float32, lda int, b []float32, ldb int, rows, f int) float64 {
	raceRead(a, lda, f, 0, rows)
	raceRead(b, ldb, f, 0, rows)
	return float64(C.dk_call_dot(t.t, f32(a), C.int64_t(lda), f32(b), C.int64_t(ldb), C.int64_t(rows), C.int64_t(f)))
}

// AddScaled sets y = a + k·b.
func (t *Table) AddScaled(a []float32, lda int, b []float32, ldb int, k float32, y []float32, ldy, rows, f int) {
	raceRead(a, lda, f, 0, rows)
	raceRead(b, ldb, f, 0, rows)
	raceWrite(y, ldy, f, 0, rows)
	C.dk_call_add_scaled(t.t, f32(a), C.int64_t(lda), f32(b), C.int64_t(ldb), C.float(k), f32(y), C.int64_t(ldy),
		C.int64_t(rows), C.int64_t(f))
}

// AddRows adds row i of x to row ids[i] of y, or to none for an id below 0.
func (t *Table) AddRows(x []float32, ldx int, ids []int32, y []float32, ldy, f int) {
	raceRead(x, ldx, f, 0, len(ids))
	raceSome(y, ldy, f, ids)
	C.dk_call_add_rows(t.t, f32(x), C.int64_t(ldx), i32(ids), C.int64_t(len(ids)), f32(y), C.int64_t(ldy), C.int64_t(f))
}

// HeadDot sets y[r,k] to the inner product of head k of row r and row k of a.
func (t *Table) HeadDot(x []float32, ldx int, a []float32, lda int, y []float32, ldy, rows, h, d int) {
	raceRead(x, ldx, h*d, 0, rows)
	raceRead(a, lda, d, 0, h)
	raceWrite(y, ldy, h, 0, rows)
	C.dk_call_head_dot(t.t, f32(x), C.int64_t(ldx), f32(a), C.int64_t(lda), f32(y), C.int64_t(ldy), C.int64_t(rows),
		C.int64_t(h), C.int64_t(d))
}

// HeadOuterAdd adds g[r,k] times row k of a to head k of row r of x.
func (t *Table) HeadOuterAdd(g []float32, ldg int, a []float32, lda int, x []float32, ldx, rows, h, d int) {
	raceRead(g, ldg, h, 0, rows)
	raceRead(a, lda, d, 0, h)
	raceWrite(x, ldx, h*d, 0, rows)
	C.dk_call_head_outer_add(t.t, f32(g), C.int64_t(ldg), f32(a), C.int64_t(lda), f32(x), C.int64_t(ldx),
		C.int64_t(rows), C.int64_t(h), C.int64_t(d))
}

// HeadDotGrad sums g[r,k] times head k of row r of x into row k of da.
func (t *Table) HeadDotGrad(g []float32, ldg int, x []float32, ldx int, da []float32, lda, rows, h, d int) {
	raceRead(g, ldg, h, 0, rows)
	raceRead(x, ldx, h*d, 0, rows)
	raceWrite(da, lda, d, 0, h)
	C.dk_call_head_dot_grad(t.t, f32(g), C.int64_t(ldg), f32(x), C.int64_t(ldx), f32(da), C.int64_t(lda),
		C.int64_t(rows), C.int64_t(h), C.int64_t(d))
}

// HeadMean sets y to the mean over the heads of each row.
func (t *Table) HeadMean(x []float32, ldx int, y []float32, ldy, rows, h, d int) {
	raceRead(x, ldx, h*d, 0, rows)
	raceWrite(y, ldy, d, 0, rows)
	C.dk_call_head_mean(t.t, f32(x), C.int64_t(ldx), f32(y), C.int64_t(ldy), C.int64_t(rows), C.int64_t(h), C.int64_t(d))
}

// HeadSpread sets every head of x to g/h.
func (t *Table) HeadSpread(g []float32, ldg int, x []float32, ldx, rows, h, d int) {
	raceRead(g, ldg, d, 0, rows)
	raceWrite(x, ldx, h*d, 0, rows)
	C.dk_call_head_spread(t.t, f32(g), C.int64_t(ldg), f32(x), C.int64_t(ldx), C.int64_t(rows), C.int64_t(h),
		C.int64_t(d))
}

// BCE is binary cross-entropy over the rows whose mask is not below 0, with the
// gradient in grad unless it is nil. Row r lists its classes in
// col[rowPtr[r]:rowPtr[r+1]].
func (t *Table) BCE(l []float32, ldl int, grad []float32, ldg int, rowPtr []int64, col, mask []int32, posW []float32, scale float32, f, rows int) float64 {
	raceRead(l, ldl, f, 0, rows)
	raceWrite(grad, ldg, f, 0, rows)
	raceRow(posW, 0, f, false)
	return float64(C.dk_call_bce(t.t, f32(l), C.int64_t(ldl), f32(grad), C.int64_t(ldg), i64(rowPtr), i32(col),
		i32(mask), f32(posW), C.float(scale), C.int64_t(f), C.int64_t(rows)))
}

// RaceMat tells the race detector about rows [0,rows) of a matrix of f columns
// that other native code reads or writes.
func RaceMat(x []float32, ld, f, rows int, write bool) {
	if write {
		raceWrite(x, ld, f, 0, rows)
	} else {
		raceRead(x, ld, f, 0, rows)
	}
}

// ProbeGather sums the rows of x that ids names, f values each (a multiple of
// 16), prefetching ahead rows before their use (0: never). out has room for 128
// values. It measures the random-row bandwidth that a gather can reach.
func (t *Table) ProbeGather(x []float32, ldx int, ids []int32, f, ahead int, out []float32) {
	C.dk_call_probe_gather(t.t, f32(x), C.int64_t(ldx), i32(ids), C.int64_t(len(ids)), C.int64_t(f),
		C.int64_t(ahead), f32(out))
}

// ProbeCopy copies x to y front to back: sequential bandwidth.
func (t *Table) ProbeCopy(x, y []float32) {
	C.dk_call_probe_copy(t.t, f32(x), f32(y), C.int64_t(len(x)))
}

// ProbeFMA runs rounds of ten vector multiply-adds and returns how many
// floating-point operations that were.
func (t *Table) ProbeFMA(rounds int) float64 {
	C.dk_call_probe_fma(t.t, C.int64_t(rounds))
	width := map[ISA]float64{Scalar: 1, AVX2: 8, AVX512: 16}[t.isa]
	return float64(rounds) * 10 * 2 * width
}

// ProbeNothing crosses into C and back.
func (t *Table) ProbeNothing(x, y []float32) { C.dk_call_nothing(t.t, f32(x), f32(y), 0) }

// NaiveSpMM is the plain loop that the benchmark compares with. It needs AVX2.
func NaiveSpMM(rowPtr []int64, col []int32, w, x []float32, ldx int, y []float32, ldy, f, lo, hi int) {
	C.dk_naive_spmm(i64(rowPtr), i32(col), f32(w), f32(x), C.int64_t(ldx), f32(y), C.int64_t(ldy), C.int64_t(f),
		C.int64_t(lo), C.int64_t(hi))
}
