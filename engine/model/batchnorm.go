package model

import (
	"fmt"
	"math"

	"dorylus/engine/task"
	"dorylus/kernels"
)

// The columns of a batch normalisation's statistics, in groups as wide as its
// input.
const (
	bnScale = iota // out = scale·x + shift
	bnShift
	bnInv // normalised x = inv·x + off
	bnOff
	bnMean // of the batch, and its unbiased variance
	bnVar
	bnGroups
)

// The groups of what its backward half adds to each row's gradient.
const (
	bnOne   = iota // 1
	bnMeanX        // -mean(dy·x^)
	bnMeanD        // -mean(dy)
	bnZero
	bnBackGroups
)

// batchNorm adds batch normalisation (Ioffe and Szegedy, ICML 2015) with PyTorch's
// parameters, running statistics and start:
//
//	y = gamma·x^ + beta,   x^ = (x - mean)/sqrt(var + eps)
//
// with mean and variance per column over the rows that training sees: those that
// the loss can reach, on every partition. An evaluation uses the running ones.
//
// Each block publishes its moments, and every interval merges those of all blocks in
// one fixed tree, so that the bits depend on neither. Backward, blocks publish
// their sums of dy and dy·x^:
//
//	dx = gamma/sqrt(var + eps)·(dy - mean(dy) - x^·mean(dy·x^))
func (b *builder) batchNorm(in, layer int) int {
	of := b.p.Bufs[in]
	n := of.Cols
	vector := func(what string, init Init, stat bool) int {
		return b.param(ParamSpec{Name: fmt.Sprintf("norm%d.%s", layer, what), Rows: 1, Cols: n, Init: init, Layer: layer, Bias: true, Stat: stat})
	}
	gamma, beta := vector("weight", One, false), vector("bias", Zero, false)
	mean, variance := vector("running_mean", Zero, true), vector("running_var", One, true)
	perBlock := func(what string, groups int) int {
		return b.buf(Buf{Name: name(what, layer), Cols: groups * n, PerBlock: true})
	}
	group := func(m *kernels.Mat, k int) *kernels.Mat { return m.Columns(k*n, (k+1)*n) }

	part, stat := perBlock("moments", 2), perBlock("stat", bnGroups)
	b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{in}, Out: []int{part}}, func(c *Ctx) {
		if !c.Train {
			return
		}
		m := c.Scratch(0, 2, n)
		c.S.ColMoments(m, c.SeenRows(in, 1))
		for k := range 2 {
			c.S.Copy(group(c.Mat(part), k), m.Sub(kernels.Span{Lo: k, Hi: k + 1}))
		}
	})
	b.reduceStep(part, stat, layer, []int{gamma, beta, mean, variance}, &Reduce{Level: of.Level, Fn: func(r *Reduction) {
		batchStats(r, n, r.Weights[gamma], r.Weights[beta], r.Weights[mean], r.Weights[variance])
	}})
	out := b.buf(Buf{Name: name("norm", layer), Level: of.Level, Cols: n})
	b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{in, stat}, Out: []int{out}, Grads: []int{mean, variance}}, func(c *Ctx) {
		st := c.Mat(stat)
		c.S.ColAffine(c.Mat(out), c.Mat(in), nil, group(st, bnScale), nil, group(st, bnShift))
		if !c.Train {
			return
		}
		if c.Block == 0 { // all blocks know the statistics; one says so
			c.S.Copy(c.Grads[mean], group(st, bnMean))
			c.S.Copy(c.Grads[variance], group(st, bnVar))
			return
		}
		c.S.Zero(c.Grads[mean])
		c.S.Zero(c.Grads[variance])
	})
	b.backward = append(b.backward, func() {
		d := b.gradOf(out)
		sums, back := perBlock("dsums", 2), perBlock("dstat", bnBackGroups)
		normalised := func(c *Ctx, x *kernels.Mat) *kernels.Mat {
			xn := c.Scratch(2, x.Rows, n)
			c.S.ColAffine(xn, x, nil, group(c.Mat(stat), bnInv), nil, group(c.Mat(stat), bnOff))
			return xn
		}
		b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{in, stat, d}, Out: []int{sums}, Grads: []int{gamma, beta}}, func(c *Ctx) {
			dm := c.Mat(d)
			c.S.ColSum(c.Grads[beta], dm, kernels.Span{Hi: dm.Rows})
			c.S.ColDot(c.Grads[gamma], dm, normalised(c, c.Mat(in)))
			c.S.Copy(group(c.Mat(sums), 0), c.Grads[beta])
			c.S.Copy(group(c.Mat(sums), 1), c.Grads[gamma])
		})
		b.reduceStep(sums, back, layer, nil, &Reduce{Level: of.Level, Fn: func(r *Reduction) { batchMeans(r, n) }})
		dIn, _ := b.contribute(in)
		b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{in, stat, d, back}, Out: []int{dIn}}, func(c *Ctx) {
			x, dy, dx := c.SeenRows(in, 1), c.SeenRows(d, 3), c.Mat(dIn)
			seen := c.Seen[of.Level]
			if seen != nil {
				dx = c.Scratch(4, x.Rows, n)
			}
			bk := c.Mat(back)
			c.S.ColAffine(dx, dy, normalised(c, x), group(bk, bnOne), group(bk, bnMeanX), group(bk, bnMeanD))
			c.S.ColAffine(dx, dx, nil, group(c.Mat(stat), bnScale), nil, group(bk, bnZero))
			if seen != nil {
				// The loss sees no other row.
				c.S.Zero(c.Mat(dIn))
				c.S.ScatterRows(c.Mat(dIn), dx, seen)
			}
		})
	})
	return out
}

// batchStats merges the blocks' moments, or takes the running ones, and sets the
// groups of statistics.
func batchStats(r *Reduction, n int, gamma, beta, mean, variance []float32) {
	group := func(k int) []float32 { return r.Out[k*n : (k+1)*n] }
	for c := range n {
		mu, v := float64(mean[c]), float64(variance[c])
		if r.Parts != nil {
			all := mergeMoments(r.Parts.Rows, func(i int) moments {
				row := r.Parts.Row(i)
				return moments{n: float64(r.Rows[i]), mean: float64(row[c]), m2: float64(row[n+c])}
			})
			mu, v = all.mean, all.m2/max(all.n, 1)
			group(bnMean)[c], group(bnVar)[c] = float32(mu), float32(all.m2/max(all.n-1, 1))
		}
		inv := 1 / math.Sqrt(v+normEps)
		scale := float64(gamma[c]) * inv
		group(bnScale)[c], group(bnShift)[c] = float32(scale), float32(float64(beta[c])-mu*scale)
		group(bnInv)[c], group(bnOff)[c] = float32(inv), float32(-mu*inv)
	}
}

// batchMeans sums the blocks' sums of dy and dy·x^ and sets the backward groups.
func batchMeans(r *Reduction, n int) {
	group := func(k int) []float32 { return r.Out[k*n : (k+1)*n] }
	rows := 0
	for _, k := range r.Rows {
		rows += k
	}
	for c := range n {
		var d, dx float64
		for i := range r.Parts.Rows {
			row := r.Parts.Row(i)
			d += float64(row[c])
			dx += float64(row[n+c])
		}
		group(bnOne)[c], group(bnZero)[c] = 1, 0
		group(bnMeanD)[c], group(bnMeanX)[c] = float32(-d/float64(max(rows, 1))), float32(-dx/float64(max(rows, 1)))
	}
}
