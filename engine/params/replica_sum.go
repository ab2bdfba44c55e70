package params

import (
	"context"
	"fmt"

	"dorylus/engine"
	"dorylus/kernels"
)

// partial is what has arrived of an epoch at a Replica.
type partial struct {
	grads  []*tree[*kernels.Mat] // by parameter
	losses *tree[float64]
}

// Buffer is an uninitialised matrix for a gradient of the parameter. It goes back by
// Push. Where there is no memory for it the replica fails: the next Push or Fetch says so.
func (r *Replica) Buffer(param int) *kernels.Mat {
	spec := r.cfg.Specs[param]
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.closed {
		m, err := r.mu.take(param, spec)
		if err == nil {
			header := *m
			r.mu.lent[&header] = m
			return &header
		}
		if r.mu.err == nil {
			r.mu.err = err
		}
	}
	return kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols))
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
		e = &partial{losses: newTree[float64](r.shape)}
		for range r.cfg.Specs {
			e.grads = append(e.grads, newTree[*kernels.Mat](r.shape))
		}
		r.mu.epochs[epoch] = e
	}
	return e
}

func (r *Replica) addLoss(out *Sums, l engine.BlockLoss) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.sum(out.Epoch)
	if e == nil {
		return nil
	}
	if first, mixed := e.losses.claimSpan(l.Block, max(l.Span, 1)); mixed {
		return cutAnew(out.Epoch, "the loss", l.Block, l.Span)
	} else if !first {
		return nil
	}
	n, _ := r.shape.over(l.Block, max(l.Span, 1))
	v := l.Loss
	for {
		left, right, what := settleIn(e.losses, &n, v, r.cfg.Own)
		switch what {
		case waits:
			return nil
		case paired:
			v = left + right
		case rooted:
			at := r.shape.span(n)
			out.Losses = append(out.Losses, engine.BlockLoss{Block: at.Lo, Span: at.Len(), Loss: left})
			return nil
		}
	}
}

// cutAnew is the error for a sum of which a part has counted already.
func cutAnew(epoch int, what string, block, span int) error {
	return fmt.Errorf("epoch %d: %s of blocks [%d,%d) has arrived before in part: it was cut in another way", epoch, what, block, block+span)
}

// addGrad counts the gradient of a block, or of those below a node, and adds up as far as that lets it.
func (r *Replica) addGrad(stream kernels.Stream, out *Sums, g engine.BlockGrad) error {
	e, m, err := r.claimGrad(out.Epoch, g)
	if e == nil || err != nil {
		return err
	}
	n, _ := r.shape.over(g.Block, max(g.Span, 1))
	for {
		r.mu.Lock()
		left, right, what := settleIn(e.grads[g.Param], &n, m, r.cfg.Own)
		r.mu.Unlock()
		switch what {
		case waits:
			return nil
		case rooted:
			at := r.shape.span(n)
			out.Grads = append(out.Grads, engine.BlockGrad{Param: g.Param, Block: at.Lo, Span: at.Len(), G: left})
			return nil
		}
		if m = left; m == nil {
			m = right
		}
		if left == nil || right == nil {
			continue // nil is zero: the sum is the other one, bit for bit
		}
		stream.Add(left, left, right)
		if err := stream.Wait(); err != nil {
			return fmt.Errorf("epoch %d: sum gradients of %s: %w", out.Epoch, r.cfg.Specs[g.Param].Name, err)
		}
		r.mu.Lock()
		r.mu.put(g.Param, right)
		r.mu.Unlock()
	}
}

// claimGrad takes g's matrix over and says whether it counts: the epoch's sum is nil
// where it does not.
func (r *Replica) claimGrad(epoch int, g engine.BlockGrad) (*partial, *kernels.Mat, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m *kernels.Mat
	known := g.G == nil
	if !known {
		m, known = r.mu.lent[g.G]
		delete(r.mu.lent, g.G)
	}
	e := r.sum(epoch)
	first, mixed := false, false
	if e != nil {
		first, mixed = e.grads[g.Param].claimSpan(g.Block, max(g.Span, 1))
	}
	if !first {
		r.mu.put(g.Param, m)
	}
	if mixed {
		return nil, nil, cutAnew(epoch, "the gradient of "+r.cfg.Specs[g.Param].Name, g.Block, g.Span)
	}
	if !first {
		return nil, nil, nil
	}
	if !known {
		return nil, nil, fmt.Errorf("epoch %d: gradient of %s, block %d: its matrix is not from Buffer, or was handed over before",
			epoch, r.cfg.Specs[g.Param].Name, g.Block)
	}
	return e, m, nil
}

// send hands sums over, from host memory, and takes their matrices back.
func (r *Replica) send(stream kernels.Stream, out *Sums) error {
	if len(out.Grads) == 0 && len(out.Losses) == 0 {
		return nil
	}
	own := make([]*kernels.Mat, len(out.Grads))
	for i := range out.Grads {
		g := &out.Grads[i]
		own[i] = g.G
		if m := g.G; m != nil && m.Host == nil {
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

// span are the leaves below a node.
func (s shape) span(n node) kernels.Span {
	return kernels.Span{Lo: n.k << n.level, Hi: min((n.k+1)<<n.level, s.counts[0])}
}

// settleIn is settle among the leaves of own: a node whose sibling has others is a root.
func settleIn[T any](t *tree[T], n *node, v T, own kernels.Span) (left, right T, what settled) {
	var none T
	for n.level < len(t.shape.counts)-1 {
		sibling := node{n.level, n.k ^ 1}
		if sibling.k >= t.shape.counts[n.level] { // v passes through
			n.level, n.k = n.level+1, n.k>>1
			continue
		}
		if s := t.shape.span(sibling); s.Lo < own.Lo || s.Hi > own.Hi {
			return v, none, rooted
		}
		at := t.shape.base[n.level] + sibling.k
		if !t.full[at] {
			at = t.shape.base[n.level] + n.k
			t.full[at], t.value[at] = true, v
			return none, none, waits
		}
		other := t.value[at]
		t.full[at], t.value[at] = false, none
		left, right = v, other
		if n.k&1 == 1 {
			left, right = other, v
		}
		n.level, n.k = n.level+1, n.k>>1
		return left, right, paired
	}
	return v, none, rooted
}
