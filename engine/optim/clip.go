package optim

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

// clipEps keeps the scale of clipping finite; PyTorch's clip_grad_norm_ has the same.
const clipEps = 1e-6

// Clip scales all gradients together to Config.ClipNorm, as PyTorch's clip_grad_norm_
// does: by min(1, ClipNorm/(norm+1e-6)). norm, which it returns, is that of the values
// of all gradients before, but not of running statistics. Without clipping it does
// nothing and returns 0.
//
// It is Squares, Norm and Scale, one after the other. Where several optimisers have some
// of the rows each, they make the first and the last step alone and the second together:
// the bits are the same.
//
// grads has a matrix per parameter; spare has one of the same shape each, whose values
// are lost. s is idle before; afterwards the scaling may still be queued.
func (o *Optimizer) Clip(s kernels.Stream, grads, spare []*kernels.Mat) (norm float64, err error) {
	if o.cfg.ClipNorm == 0 {
		return 0, nil
	}
	squares, err := o.Squares(s, grads)
	if err != nil {
		return 0, err
	}
	norm = Norm(squares)
	o.Scale(s, grads, spare, norm)
	return norm, nil
}

// Squares are the sums of squares of each row of each gradient, in float64 by column;
// those of running statistics are nil. nil gradients are zero. s is idle before and after.
func (o *Optimizer) Squares(s kernels.Stream, grads []*kernels.Mat) ([][]float64, error) {
	squares := make([][]float64, len(grads))
	for p, g := range grads {
		if o.specs[p].Stat {
			continue
		}
		squares[p] = make([]float64, o.specs[p].Rows)
		if g == nil {
			continue
		}
		host := g
		if g.Host == nil {
			host = kernels.FromSlice(g.Rows, g.Cols, make([]float32, g.Rows*g.Cols))
			s.Get(host.Host, g)
			if err := s.Wait(); err != nil {
				return nil, fmt.Errorf("optimizer: read the gradient of %s: %w", o.specs[p].Name, err)
			}
		}
		for r := range host.Rows {
			sum := 0.0
			for _, x := range host.Row(r) {
				sum += float64(x) * float64(x)
			}
			squares[p][r] = sum
		}
	}
	return squares, nil
}

// Norm is the norm of the gradients whose Squares these are, summed by parameter and row.
func Norm(squares [][]float64) float64 {
	sum := 0.0
	for _, rows := range squares {
		for _, x := range rows {
			sum += x
		}
	}
	return math.Sqrt(sum)
}

// Scale clips gradients, of this norm together with those of all other optimisers of the
// model. grads and spare are those of Clip.
func (o *Optimizer) Scale(s kernels.Stream, grads, spare []*kernels.Mat, norm float64) {
	scale := float32(o.cfg.ClipNorm / (norm + clipEps))
	if o.cfg.ClipNorm == 0 || !(scale < 1) {
		return
	}
	for p, g := range grads {
		if o.specs[p].Stat {
			continue
		}
		s.Zero(spare[p])
		s.AddScaled(g, spare[p], g, scale, nil) // 0 + scale·g: rounded once
	}
}
