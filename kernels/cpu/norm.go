//go:build cgo && amd64 && linux

package cpu

import "dorylus/kernels"

// LayerNorm normalises each row.
func (s *stream) LayerNorm(dst, stat, x, gamma, beta *kernels.Mat, eps float32) {
	kernels.CheckLayerNorm(dst, stat, x, gamma, beta, eps)
	kernels.CheckHost("LayerNorm", dst, stat, x, gamma, beta)
	if !s.runs("LayerNorm") || x.Cols == 0 {
		return
	}
	s.table.LayerNorm(x.Host, x.Stride, gamma.Host, beta.Host, eps, dst.Host, dst.Stride, stat.Host, stat.Stride, x.Rows, x.Cols)
}

// LayerNormBack is LayerNorm's gradient.
func (s *stream) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *kernels.Mat) {
	kernels.CheckLayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
	kernels.CheckHost("LayerNormBack", dx, dgamma, dbeta, dy, x, stat, gamma)
	if !s.runs("LayerNormBack") || x.Cols == 0 {
		return
	}
	s.table.LayerNormBack(dy.Host, dy.Stride, x.Host, x.Stride, stat.Host, stat.Stride, gamma.Host, dx.Host, dx.Stride, dgamma.Host, dbeta.Host, x.Rows, x.Cols)
}

// ColMoments is the mean of each column and the squared distances from it.
func (s *stream) ColMoments(dst, x *kernels.Mat) {
	kernels.CheckColMoments(dst, x)
	kernels.CheckHost("ColMoments", dst, x)
	if !s.runs("ColMoments") || x.Cols == 0 {
		return
	}
	s.table.ColMoments(x.Host, x.Stride, dst.Row(0), dst.Row(1), x.Rows, x.Cols)
}

// ColAffine sets dst = a·x + b·y + d, column by column.
func (s *stream) ColAffine(dst, x, y, a, b, d *kernels.Mat) {
	kernels.CheckColAffine(dst, x, y, a, b, d)
	kernels.CheckHost("ColAffine", dst, x, y, a, b, d)
	if !s.runs("ColAffine") || dst.Cols == 0 {
		return
	}
	ldy := 0
	if y != nil {
		ldy = y.Stride
	}
	s.table.ColAffine(x.Host, x.Stride, host(y), ldy, a.Host, host(b), d.Host, dst.Host, dst.Stride, x.Rows, x.Cols)
}
