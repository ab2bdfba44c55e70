package pserver

import (
	"fmt"
	"math"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// newMoments is an optimiser's state to be filled.
func newMoments(cfg optim.Config, specs []model.ParamSpec, step int) *optim.State {
	st := &optim.State{Step: step}
	for range cfg.WithDefaults().Slots() {
		st.Slots = append(st.Slots, newMats(specs))
	}
	return st
}

// push counts what a client brings. The server of the slices drops repeats; an error of
// its own, such as a gradient that is not finite, is the run's end and nobody's fault.
func (s *shard) push(c *client, m *rpc.Message) error {
	var h push
	if err := readHead(m, kindPush, &h); err != nil {
		return err
	}
	s.mu.Lock()
	newest := s.newest()
	s.mu.Unlock()
	switch {
	case h.Epoch < s.first:
		return fmt.Errorf("gradients of epoch %d, the run starts with %d", h.Epoch, s.first)
	case h.Epoch > newest+s.job.Ahead:
		return fmt.Errorf("gradients of epoch %d, while version %d is the newest: more than %d ahead", h.Epoch, newest, s.job.Ahead)
	case h.Epoch < newest:
		return nil // a repeat of what has been used
	}
	p, err := s.decode(c, &h, m.Parts)
	if err != nil {
		return fmt.Errorf("gradients of epoch %d: %w", h.Epoch, err)
	}
	if err := s.ps.Push(s.cfg.ctx, p); err != nil {
		s.fail(err)
		return s.cause()
	}
	return nil
}

// decode reads a push into buffers of the server.
func (s *shard) decode(c *client, h *push, parts [][]byte) (*engine.Push, error) {
	p := &engine.Push{ID: task.ID{Epoch: h.Epoch}}
	for _, g := range h.Grads {
		at, here := s.at[g.Param]
		if !here {
			return nil, fmt.Errorf("of parameter %d, of which shard %d has no rows", g.Param, s.cfg.Shard)
		}
		if err := c.owns("gradient", g.Block, g.Span); err != nil {
			return nil, err
		}
		b := engine.BlockGrad{Param: at, Block: g.Block, Span: g.Span}
		if !g.Nil {
			b.G = s.ps.Buffer(at)
			var err error
			if parts, err = readTensor(parts, b.G); err != nil {
				return nil, fmt.Errorf("of %s, blocks [%d,%d): %w", s.job.Specs[g.Param].Name, g.Block, g.Block+g.Span, err)
			}
		}
		p.Grads = append(p.Grads, b)
	}
	if len(parts) > 0 {
		return nil, fmt.Errorf("%d parts follow the last one", len(parts))
	}
	for _, l := range h.Losses {
		if err := c.owns("loss", l.Block, l.Span); err != nil {
			return nil, err
		}
		p.Losses = append(p.Losses, engine.BlockLoss{Block: l.Block, Span: l.Span, Loss: math.Float64frombits(l.Bits)})
	}
	return p, nil
}

// owns says why a client may not send sums of blocks.
func (c *client) owns(what string, block, span int) error {
	if span < 1 || block < c.blocks.Lo || span > c.blocks.Hi-block {
		return fmt.Errorf("the %s of %d blocks from %d, it has [%d,%d)", what, span, block, c.blocks.Lo, c.blocks.Hi)
	}
	return nil
}

// sliceState is a shard's part of a model's state, its own memory shared.
func sliceState(st *params.State, slices []Slice) []*kernels.Mat {
	var all []*kernels.Mat
	for _, s := range slices {
		all = append(all, part(st.Weights, s))
	}
	if st.Optim != nil {
		for _, mats := range st.Optim.Slots {
			for _, s := range slices {
				all = append(all, part(mats, s))
			}
		}
	}
	return all
}
