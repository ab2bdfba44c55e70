//go:build cgo && amd64 && linux

package cpu

import (
	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

// GAT is attention's gather; the formulas are in kernels.AttentionGatherer.
func (s *stream) GAT(dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckGAT(dst, lse, g, x, as, ad, p, ep, rows)
	kernels.CheckHost("GAT", dst, lse, x, as, ad, p.Self.W, biasOf(ep))
	r := s.own("GAT", g)
	if !s.runs("GAT") || rows.Len() == 0 {
		return
	}
	n := attend(r, p, x, rows)
	n.NearIDs, n.FarIDs = p.DstIDs, p.SrcIDs
	n.Near, n.LDNear, n.Far, n.LDFar = ad.Host, ad.Stride, as.Host, as.Stride
	n.Y, n.LDY, n.Out, n.LDOut, n.Ep = dst.Host, dst.Stride, lse.Host, lse.Stride, epilogue(ep)
	s.table.GAT(n)
}

// GATBackDst is the part of the gradient that gathers along the graph.
func (s *stream) GATBackDst(dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
	kernels.CheckHost("GATBackDst", dad, dot, x, as, ad, lse, dy, p.Self.W)
	r := s.own("GATBackDst", g)
	if !s.runs("GATBackDst") || rows.Len() == 0 {
		return
	}
	n := attend(r, p, x, rows)
	n.NearIDs, n.FarIDs = p.DstIDs, p.SrcIDs
	n.Near, n.LDNear, n.Far, n.LDFar = ad.Host, ad.Stride, as.Host, as.Stride
	n.LSE, n.LDLSE, n.Own, n.LDOwn = lse.Host, lse.Stride, dy.Host, dy.Stride
	n.Out, n.LDOut, n.Out2, n.LDOut2 = dad.Host, dad.Stride, dot.Host, dot.Stride
	s.table.GATBackDst(n)
}

// GATBackSrc is the part of the gradient that gathers along the transpose.
func (s *stream) GATBackSrc(dx, das *kernels.Mat, back kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackSrc(dx, das, back, x, as, ad, lse, dot, dy, p, rows)
	kernels.CheckHost("GATBackSrc", dx, das, x, as, ad, lse, dot, dy, p.Self.W)
	r := s.own("GATBackSrc", back)
	if !s.runs("GATBackSrc") || rows.Len() == 0 {
		return
	}
	n := attend(r, p, dy, rows)
	n.NearIDs, n.FarIDs = p.SrcIDs, p.DstIDs
	n.Near, n.LDNear, n.Far, n.LDFar = as.Host, as.Stride, ad.Host, ad.Stride
	n.LSE, n.LDLSE, n.Dot, n.LDDot, n.Own, n.LDOwn = lse.Host, lse.Stride, dot.Host, dot.Stride, x.Host, x.Stride
	n.Y, n.LDY, n.Out, n.LDOut = dx.Host, dx.Stride, das.Host, das.Stride
	s.table.GATBackSrc(n)
}

// attend is what the three have in common; x is what they gather.
func attend(g *graph, p kernels.Attention, x *kernels.Mat, rows kernels.Span) *native.Attend {
	n := &native.Attend{
		RowPtr: g.RowPtr, Col: g.Col, W: g.Val,
		Heads: p.Heads, D: x.Cols / p.Heads, Slope: p.Slope, Drop: dropout(p.Drop),
		X: x.Host, LDX: x.Stride, Lo: rows.Lo, Hi: rows.Hi,
	}
	if p.Self.On {
		n.SelfOn, n.SelfCol, n.SelfW = true, p.Self.Col, host(p.Self.W)
	}
	return n
}
