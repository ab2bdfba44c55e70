package params

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dorylus/engine"
	"dorylus/kernels"
)

// Made is Server.Made.
func (r *Replica) Made() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.made)
}

// Buffer is an uninitialised matrix for a gradient of the parameter. It goes back by
// Push. Where there is no memory for it the replica fails: the next Push or Fetch says so.
func (r *Replica) Buffer(param int) *kernels.Mat {
	spec := r.cfg.Specs[param]
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.closed {
		m, err := r.mu.lend(param, spec)
		if err == nil {
			return m
		}
		if r.mu.err == nil {
			r.mu.err = err
		}
	}
	return scratch(spec)
}

// Push hands over gradients, made in matrices of Buffer, and losses of own blocks, single
// or summed below nodes of the tree. Each (epoch, param, block) and (epoch, block) counts once; repeats are
// dropped, and so is what comes when the epoch's version is there. What this completes is
// sent before Push returns.
func (r *Replica) Push(ctx context.Context, p *engine.Push) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("push of %v: %w", p.ID, err)
	}
	if err := r.checkPush(p); err != nil {
		return fmt.Errorf("push of %v: %w", p.ID, err)
	}
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	r.mu.Lock()
	stream, err := r.mu.stream()
	r.mu.Unlock()
	if err != nil {
		return r.Fail(fmt.Errorf("push of %v: %w", p.ID, err))
	}
	out := &Sums{Epoch: p.ID.Epoch}
	for _, l := range p.Losses {
		if err := r.addLoss(out, l); err != nil {
			return r.Fail(err)
		}
	}
	for _, g := range p.Grads {
		if err := r.addGrad(stream, out, g); err != nil {
			return r.Fail(err)
		}
	}
	if err := r.send(stream, out); err != nil {
		return r.Fail(err)
	}
	r.mu.Lock()
	r.mu.putStream(stream)
	r.mu.Unlock()
	return nil
}

// checkPush refuses what fits no parameter or own blocks, before anything is counted.
func (r *Replica) checkPush(p *engine.Push) error {
	for _, g := range p.Grads {
		if g.Param < 0 || g.Param >= len(r.cfg.Specs) {
			return fmt.Errorf("gradient of parameter %d of %d", g.Param, len(r.cfg.Specs))
		}
		spec := r.cfg.Specs[g.Param]
		if err := r.owns("gradient of "+spec.Name, g.Block, g.Span); err != nil {
			return err
		}
		if g.G != nil && (g.G.Rows != spec.Rows || g.G.Cols != spec.Cols) {
			return fmt.Errorf("gradient of %s, block %d, is %d x %d, want %d x %d", spec.Name, g.Block, g.G.Rows, g.G.Cols, spec.Rows, spec.Cols)
		}
	}
	for _, l := range p.Losses {
		if err := r.owns("loss", l.Block, l.Span); err != nil {
			return err
		}
	}
	return nil
}

// owns says why blocks are not those of a node of the tree, or not of this graph server.
func (r *Replica) owns(what string, block, span int) error {
	span = max(span, 1)
	if _, ok := r.shape.over(block, span); !ok || block < r.cfg.Own.Lo || block+span > r.cfg.Own.Hi {
		return fmt.Errorf("%s of blocks [%d,%d) of %d, this graph server has [%d,%d); want all below one node of the tree of sums",
			what, block, block+span, r.cfg.Blocks, r.cfg.Own.Lo, r.cfg.Own.Hi)
	}
	return nil
}

// sum is what has arrived of an epoch, nil if its version is there. mu is held.
func (r *Replica) sum(epoch int) *partial {
	if epoch < r.newest().number {
		return nil
	}
	e := r.mu.epochs[epoch]
	if e == nil {
		new := newPartial(r.shape, len(r.cfg.Specs))
		e = &new
		r.mu.epochs[epoch] = e
	}
	return e
}

func (r *Replica) addLoss(out *Sums, l engine.BlockLoss) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, sum, done, err := r.adder.loss(r.sum(out.Epoch), out.Epoch, l)
	if done {
		at := r.shape.span(n)
		out.Losses = append(out.Losses, engine.BlockLoss{Block: at.Lo, Span: at.Len(), Loss: sum})
	}
	return err
}

// addGrad counts the gradient of a block, or of those below a node, and adds up as far as that lets it.
func (r *Replica) addGrad(stream kernels.Stream, out *Sums, g engine.BlockGrad) error {
	r.mu.Lock()
	e := r.sum(out.Epoch)
	m, counts, err := r.adder.claim(e, out.Epoch, g)
	r.mu.Unlock()
	if !counts || err != nil {
		return err
	}
	var busy time.Duration // nobody asks
	n, sum, done, err := r.adder.grad(stream, e, out.Epoch, g, m, &busy)
	if done {
		at := r.shape.span(n)
		out.Grads = append(out.Grads, engine.BlockGrad{Param: g.Param, Block: at.Lo, Span: at.Len(), G: sum})
	}
	return err
}

// send hands sums over, from host memory unless they may stay, and takes their matrices
// back.
func (r *Replica) send(stream kernels.Stream, out *Sums) error {
	if len(out.Grads) == 0 && len(out.Losses) == 0 {
		return nil
	}
	own := make([]*kernels.Mat, len(out.Grads))
	for i := range out.Grads {
		g := &out.Grads[i]
		own[i] = g.G
		if m := g.G; m != nil && m.Host == nil && !r.cfg.Near {
			g.G = kernels.FromSlice(m.Rows, m.Cols, make([]float32, m.Rows*m.Cols))
			stream.Get(g.G.Host, m)
		}
	}
	if err := stream.Wait(); err != nil {
		return fmt.Errorf("epoch %d: read gradients: %w", out.Epoch, err)
	}
	err := r.cfg.Send(out)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, g := range out.Grads {
		r.mu.put(g.Param, own[i])
	}
	return err
}
