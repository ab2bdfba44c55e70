package params

import (
	"errors"
	"fmt"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// pool keeps device matrices by parameter, for weights and gradients alike, and
// streams. Its owner locks it.
type pool struct {
	dev     kernels.Device
	all     []*kernels.Mat   // every matrix, to be freed at the end
	made    []int            // how many of them, by parameter
	spare   [][]*kernels.Mat // by parameter
	ones    []*kernels.Mat   // spare single values
	streams []kernels.Stream // idle
	opened  []kernels.Stream // all
	// lent are the gradient buffers that callers hold. Each is lent under a new
	// header, so that a header that was handed over is never valid again,
	// whatever has become of the memory behind it.
	lent map[*kernels.Mat]*kernels.Mat
}

func newPool(dev kernels.Device, params int) pool {
	return pool{dev: dev, made: make([]int, params), spare: make([][]*kernels.Mat, params), lent: map[*kernels.Mat]*kernels.Mat{}}
}

// take is a matrix for parameter p, its contents undefined.
func (p *pool) take(param int, spec model.ParamSpec) (*kernels.Mat, error) {
	if n := len(p.spare[param]); n > 0 {
		m := p.spare[param][n-1]
		p.spare[param] = p.spare[param][:n-1]
		return m, nil
	}
	m, err := kernels.AllocFor(p.dev, kernels.Weights, spec.Rows, spec.Cols)
	if err != nil {
		return nil, fmt.Errorf("allocate a buffer for %s: %w", spec.Name, err)
	}
	p.all = append(p.all, m)
	p.made[param]++
	return m, nil
}

// takeOne is a single value, undefined.
func (p *pool) takeOne() (*kernels.Mat, error) {
	if n := len(p.ones); n > 0 {
		m := p.ones[n-1]
		p.ones = p.ones[:n-1]
		return m, nil
	}
	m, err := kernels.AllocFor(p.dev, kernels.Weights, 1, 1)
	if err != nil {
		return nil, err
	}
	p.all = append(p.all, m)
	return m, nil
}

// putOne takes a single value back.
func (p *pool) putOne(m *kernels.Mat) { p.ones = append(p.ones, m) }

// lend is a matrix for a gradient, which is known by its address until it is handed over.
func (p *pool) lend(param int, spec model.ParamSpec) (*kernels.Mat, error) {
	m, err := p.take(param, spec)
	if err != nil {
		return nil, err
	}
	header := *m
	p.lent[&header] = m
	return &header, nil
}

// scratch is a matrix for a gradient that nobody will have.
func scratch(spec model.ParamSpec) *kernels.Mat {
	return kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols))
}

// put takes a matrix back; nil does nothing.
func (p *pool) put(param int, m *kernels.Mat) {
	if m != nil {
		p.spare[param] = append(p.spare[param], m)
	}
}

func (p *pool) stream() (kernels.Stream, error) {
	if n := len(p.streams); n > 0 {
		s := p.streams[n-1]
		p.streams = p.streams[:n-1]
		return s, nil
	}
	s, err := p.dev.NewStream()
	if err != nil {
		return nil, err
	}
	p.opened = append(p.opened, s)
	return s, nil
}

// putStream takes back a stream with nothing queued.
func (p *pool) putStream(s kernels.Stream) { p.streams = append(p.streams, s) }

// free gives everything back to the device.
func (p *pool) free() error {
	var errs []error
	for _, s := range p.opened {
		errs = append(errs, s.Close())
	}
	for _, m := range p.all {
		p.dev.Free(m)
	}
	*p = pool{}
	return errors.Join(errs...)
}
