package params

import (
	"fmt"
	"sync"
	"time"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
)

// partial is what has arrived of an epoch, in trees of sums.
type partial struct {
	grads  []*tree[*kernels.Mat] // by parameter
	losses *tree[float64]
}

func newPartial(s shape, params int) partial {
	p := partial{losses: newTree[float64](s)}
	for range params {
		p.grads = append(p.grads, newTree[*kernels.Mat](s))
	}
	return p
}

// adder sums what arrives, as far as the blocks of own allow it: over all blocks in a
// Server, over those of a graph server in its Replica.
type adder struct {
	lock  sync.Locker // of pool, and of all partials
	pool  *pool
	specs []model.ParamSpec
	shape shape
	own   kernels.Span
}

// claim takes the matrix of g over, and says whether it counts in p; nil: the epoch is
// over, and nothing does. The lock is held.
func (a *adder) claim(p *partial, epoch int, g engine.BlockGrad) (m *kernels.Mat, counts bool, err error) {
	known := g.G == nil
	if !known {
		m, known = a.pool.lent[g.G]
		delete(a.pool.lent, g.G)
	}
	mixed := false
	if p != nil {
		counts, mixed = p.grads[g.Param].claimSpan(g.Block, max(g.Span, 1))
	}
	if !counts {
		a.pool.put(g.Param, m)
	}
	name := a.specs[g.Param].Name
	switch {
	case mixed:
		return nil, false, cutAnew(epoch, "the gradient of "+name, g.Block, g.Span)
	case counts && !known:
		return nil, false, fmt.Errorf("epoch %d: gradient of %s, block %d: its matrix is not from Buffer, or was handed over before", epoch, name, g.Block)
	}
	return m, counts, nil
}

// grad brings the gradient m of g, which claim has counted, as far up in p as it goes. If
// that is all there is to add, done says so, and n is the node that sum, nil for zero, is
// of. The time that adding took is added to busy, of which the lock is that of the pool.
func (a *adder) grad(stream kernels.Stream, p *partial, epoch int, g engine.BlockGrad, m *kernels.Mat, busy *time.Duration) (n node, sum *kernels.Mat, done bool, err error) {
	n, _ = a.shape.over(g.Block, max(g.Span, 1))
	for {
		a.lock.Lock()
		left, right, what := p.grads[g.Param].settle(&n, m, a.own)
		a.lock.Unlock()
		if what != paired {
			return n, left, what == rooted, nil
		}
		if m = left; m == nil {
			m = right
		}
		if left == nil || right == nil {
			continue // nil is zero: the sum is the other one, bit for bit
		}
		start := time.Now()
		stream.Add(left, left, right)
		if err := stream.Wait(); err != nil {
			return n, nil, false, fmt.Errorf("epoch %d: sum gradients of %s: %w", epoch, a.specs[g.Param].Name, err)
		}
		a.lock.Lock()
		*busy += time.Since(start)
		a.pool.put(g.Param, right)
		a.lock.Unlock()
	}
}

// loss is claim and grad for a loss. The lock is held.
func (a *adder) loss(p *partial, epoch int, l engine.BlockLoss) (n node, sum float64, done bool, err error) {
	if p == nil {
		return n, 0, false, nil
	}
	first, mixed := p.losses.claimSpan(l.Block, max(l.Span, 1))
	if mixed {
		return n, 0, false, cutAnew(epoch, "the loss", l.Block, l.Span)
	}
	if !first {
		return n, 0, false, nil
	}
	n, _ = a.shape.over(l.Block, max(l.Span, 1))
	v := l.Loss
	for {
		left, right, what := p.losses.settle(&n, v, a.own)
		if what != paired {
			return n, left, what == rooted, nil
		}
		v = left + right
	}
}

// cutAnew is the error for a sum of which a part has counted already.
func cutAnew(epoch int, what string, block, span int) error {
	return fmt.Errorf("epoch %d: %s of blocks [%d,%d) has arrived before in part: it was cut in another way", epoch, what, block, block+span)
}
