package tensorbridge

import (
	"fmt"
	"sync"

	"gorgonia.org/tensor"

	"dorylus/kernels"
)

// Engine is an execution engine for tensors whose float32 matrix products run on
// a kernels.Device; all else, and products of other types, is tensor's standard
// engine. Tensors take part that were made with tensor.WithEngine(e). It may be
// used by several goroutines; products then run one after the other.
//
// The device computes in host memory (cpu, ref): tensors are used where they are,
// transposed or sliced ones too, without copies, unless both operands run down
// their columns.
type Engine struct {
	tensor.StdEng
	mu struct {
		sync.Mutex
		stream kernels.Stream
	}
}

var _ tensor.MatMuler = (*Engine)(nil)

// NewEngine is an engine on dev, which stays the caller's. Close it before dev.
func NewEngine(dev kernels.Device) (*Engine, error) {
	probe, err := dev.Alloc(1, 1)
	if err != nil {
		return nil, fmt.Errorf("make a tensor engine on %s: %w", dev.Name(), err)
	}
	host := probe.Host != nil
	dev.Free(probe)
	if !host {
		return nil, fmt.Errorf("make a tensor engine on %s: its memory is not the host's; use the cpu device", dev.Name())
	}
	s, err := dev.NewStream()
	if err != nil {
		return nil, fmt.Errorf("make a tensor engine on %s: %w", dev.Name(), err)
	}
	e := &Engine{}
	e.mu.stream = s
	return e, nil
}

// Close gives the engine's stream back to the device.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.stream.Close()
}

// MatMul sets prealloc = a·b, for matrices m x k, k x n and m x n.
func (e *Engine) MatMul(a, b, prealloc tensor.Tensor) error {
	ad, ok1 := a.(*tensor.Dense)
	bd, ok2 := b.(*tensor.Dense)
	cd, ok3 := prealloc.(*tensor.Dense)
	if !ok1 || !ok2 || !ok3 || ad.Dtype() != tensor.Float32 || bd.Dtype() != tensor.Float32 || cd.Dtype() != tensor.Float32 {
		return e.StdEng.MatMul(a, b, prealloc)
	}
	if err := e.product(ad, bd, cd); err != nil {
		return fmt.Errorf("multiply tensors %v and %v into %v: %w", ad.Shape(), bd.Shape(), cd.Shape(), err)
	}
	return nil
}

func (e *Engine) product(ad, bd, cd *tensor.Dense) error {
	a, err := operand(ad)
	if err != nil {
		return err
	}
	b, err := operand(bd)
	if err != nil {
		return err
	}
	c, err := layoutOf(cd)
	if err != nil {
		return err
	}
	if c.trans { // the memory holds cᵀ = bᵀ·aᵀ
		a, b = layout{b.mat, !b.trans}, layout{a.mat, !a.trans}
	}
	var t kernels.Trans
	switch {
	case a.trans && b.trans: // the one product that no op has
		m := kernels.FromSlice(a.mat.Cols, a.mat.Rows, make([]float32, a.mat.Rows*a.mat.Cols))
		a.copyTo(m)
		a, t = layout{mat: m}, kernels.NT
	case a.trans:
		t = kernels.TN
	case b.trans:
		t = kernels.NT
	}
	if err := fits(c.mat, a, b); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.stream.GEMM(c.mat, a.mat, b.mat, t, nil)
	return e.mu.stream.Wait()
}

// operand is d's memory, or a copy where its strides are no matrix's.
func operand(d *tensor.Dense) (layout, error) {
	if l, err := layoutOf(d); err == nil {
		return l, nil
	}
	m, err := Copy(d)
	return layout{mat: m}, err
}

// fits says why c cannot be a·b: tensor's own callers have checked, others may
// not have.
func fits(c *kernels.Mat, a, b layout) error {
	m, k := a.mat.Rows, a.mat.Cols
	if a.trans {
		m, k = k, m
	}
	kb, n := b.mat.Rows, b.mat.Cols
	if b.trans {
		kb, n = n, kb
	}
	if k != kb || c.Rows != m || c.Cols != n {
		return fmt.Errorf("%d x %d times %d x %d is not %d x %d", m, k, kb, n, c.Rows, c.Cols)
	}
	return nil
}
