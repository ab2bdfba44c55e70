package ref

import (
	"math"

	"dorylus/kernels"
)

// LayerNorm normalises each row.
func (s *stream) LayerNorm(dst, stat, x, gamma, beta *kernels.Mat, eps float32) {
	kernels.CheckLayerNorm(dst, stat, x, gamma, beta, eps)
	kernels.CheckHost("LayerNorm", dst, stat, x, gamma, beta)
	if !s.runs("LayerNorm") {
		return
	}
	n := float64(x.Cols)
	for r := range rowsOf(x) {
		var mean, square float64
		for _, v := range x.Row(r) {
			mean += float64(v)
		}
		mean /= n
		for _, v := range x.Row(r) {
			square += (float64(v) - mean) * (float64(v) - mean)
		}
		inv := 1 / math.Sqrt(square/n+float64(eps))
		stat.Row(r)[0], stat.Row(r)[1] = float32(mean), float32(inv)
		d, g, b := dst.Row(r), gamma.Row(0), beta.Row(0)
		for c, v := range x.Row(r) {
			d[c] = float32((float64(v)-mean)*inv*float64(g[c]) + float64(b[c]))
		}
	}
}

// LayerNormBack is LayerNorm's gradient.
func (s *stream) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *kernels.Mat) {
	kernels.CheckLayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
	kernels.CheckHost("LayerNormBack", dx, dgamma, dbeta, dy, x, stat, gamma)
	if !s.runs("LayerNormBack") || x.Cols == 0 {
		return
	}
	n := x.Cols
	sums := s.zeros(2 * n)
	for r := range x.Rows {
		mean, inv := float64(stat.Row(r)[0]), float64(stat.Row(r)[1])
		xr, dyr, out, ga := x.Row(r), dy.Row(r), dx.Row(r), gamma.Row(0)
		var g, gx float64
		for c, v := range xr {
			hat, d := (float64(v)-mean)*inv, float64(dyr[c])
			sums[c] += d * hat
			sums[n+c] += d
			g += d * float64(ga[c])
			gx += d * float64(ga[c]) * hat
		}
		g /= float64(n)
		gx /= float64(n)
		for c, v := range xr {
			hat := (float64(v) - mean) * inv
			out[c] = float32(inv * (float64(dyr[c])*float64(ga[c]) - g - hat*gx))
		}
	}
	finish(dgamma.Row(0), sums[:n], 0, nil)
	finish(dbeta.Row(0), sums[n:], 0, nil)
}

// ColMoments is the mean of each column and the squared distances from it.
func (s *stream) ColMoments(dst, x *kernels.Mat) {
	kernels.CheckColMoments(dst, x)
	kernels.CheckHost("ColMoments", dst, x)
	if !s.runs("ColMoments") || x.Cols == 0 {
		return
	}
	n := x.Cols
	sums := s.zeros(2 * n)
	mean, square := sums[:n], sums[n:]
	for r := range x.Rows {
		axpy(mean, 1, x.Row(r))
	}
	for c := range mean {
		mean[c] /= math.Max(float64(x.Rows), 1)
	}
	for r := range x.Rows {
		for c, v := range x.Row(r) {
			square[c] += (float64(v) - mean[c]) * (float64(v) - mean[c])
		}
	}
	finish(dst.Row(0), mean, 0, nil)
	finish(dst.Row(1), square, 0, nil)
}

// ColAffine sets dst = a·x + b·y + d, column by column.
func (s *stream) ColAffine(dst, x, y, a, b, d *kernels.Mat) {
	kernels.CheckColAffine(dst, x, y, a, b, d)
	kernels.CheckHost("ColAffine", dst, x, y, a, b, d)
	if !s.runs("ColAffine") {
		return
	}
	for r := range rowsOf(dst) {
		out := dst.Row(r)
		for c, v := range x.Row(r) {
			sum := float64(a.Host[c])*float64(v) + float64(d.Host[c])
			if y != nil {
				sum += float64(b.Host[c]) * float64(y.Row(r)[c])
			}
			out[c] = float32(sum)
		}
	}
}
