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
// of all gradients before, but not of running statistics, summed in float64 by parameter, row and column. Without
// clipping it does nothing and returns 0.
//
// grads has a matrix per parameter; spare has one of the same shape each, whose values
// are lost. s is idle before; afterwards the scaling may still be queued.
func (o *Optimizer) Clip(s kernels.Stream, grads, spare []*kernels.Mat) (norm float64, err error) {
	if o.cfg.ClipNorm == 0 {
		return 0, nil
	}
	sum := 0.0
	for p, g := range grads {
		if o.specs[p].Stat {
			continue
		}
		host := g
		if g.Host == nil {
			host = kernels.FromSlice(g.Rows, g.Cols, make([]float32, g.Rows*g.Cols))
			s.Get(host.Host, g)
			if err := s.Wait(); err != nil {
				return 0, fmt.Errorf("optimizer: read the gradient of %s: %w", o.specs[p].Name, err)
			}
		}
		for r := range host.Rows {
			for _, x := range host.Row(r) {
				sum += float64(x) * float64(x)
			}
		}
	}
	norm = math.Sqrt(sum)
	scale := float32(o.cfg.ClipNorm / (norm + clipEps))
	if !(scale < 1) {
		return norm, nil
	}
	for p, g := range grads {
		if o.specs[p].Stat {
			continue
		}
		s.Zero(spare[p])
		s.AddScaled(g, spare[p], g, scale, nil) // 0 + scale·g: rounded once
	}
	return norm, nil
}
