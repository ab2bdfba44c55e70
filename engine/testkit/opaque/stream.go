package opaque

import (
	"fmt"
	"strings"

	"dorylus/kernels"
)

// stream queues ops, with their operands in host memory, and runs them in Wait.
type stream struct {
	dev   *Device
	host  kernels.Stream
	queue []*call
}

// call is one op with its operands.
type call struct {
	dev    *Device
	op     string
	shapes []string
	blocks []*block
	run    func(kernels.Stream)
}

// NewStream implements kernels.Device.
func (d *Device) NewStream() (kernels.Stream, error) {
	if err := d.trip("NewStream"); err != nil {
		return nil, fmt.Errorf("%s: open a stream: %w", d.Name(), err)
	}
	h, err := d.host.NewStream()
	if err != nil {
		return nil, err
	}
	s := &stream{dev: d, host: h}
	if d.host.Name() == "ref" {
		return summer{s}, nil
	}
	return s, nil
}

// call begins an op.
func (s *stream) call(op string) *call { return &call{dev: s.dev, op: op} }

// add queues the op, which run does on the host.
func (s *stream) add(c *call, run func(h kernels.Stream)) {
	c.run = run
	s.queue = append(s.queue, c)
}

// mat is m in host memory. What is in host memory itself is a bug of the caller.
func (c *call) mat(m *kernels.Mat) *kernels.Mat {
	if m != nil && m.Host != nil && m.Rows > 0 && m.Cols > 0 {
		panic(&kernels.ShapeError{Op: c.op, Msg: fmt.Sprintf("a matrix of %d x %d is in host memory, want one of %s", m.Rows, m.Cols, c.dev.Name())})
	}
	return c.any(m)
}

// any is m in host memory, wherever it was.
func (c *call) any(m *kernels.Mat) *kernels.Mat {
	if m == nil {
		return nil
	}
	c.shapes = append(c.shapes, fmt.Sprintf("%d x %d", m.Rows, m.Cols))
	h := &kernels.Mat{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Host: m.Host}
	if m.Rows == 0 || m.Cols == 0 || m.Host != nil {
		return h
	}
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	b := c.dev.find(m.Addr)
	need := uintptr((m.Rows-1)*m.Stride + m.Cols)
	if b == nil || m.Addr+4*need > b.addr+b.size || (m.Addr-b.addr)%4 != 0 {
		panic(&kernels.ShapeError{Op: c.op, Msg: fmt.Sprintf("a matrix of %d x %d, %d apart, at %#x is not in memory that %s holds", m.Rows, m.Cols, m.Stride, m.Addr, c.dev.Name())})
	}
	first := (m.Addr - b.addr) / 4
	h.Host = b.mat.Host[first : first+need : first+need]
	c.blocks = append(c.blocks, b)
	return h
}

func (c *call) ids(v []int32) []int32 { return c.dev.list(c.op, v) }

func (c *call) drop(d kernels.Dropout) kernels.Dropout {
	if d.P > 0 {
		d.IDs = c.ids(d.IDs)
	}
	return d
}

func (c *call) epilogue(ep *kernels.Epilogue) *kernels.Epilogue {
	if ep == nil {
		return nil
	}
	return &kernels.Epilogue{Bias: c.mat(ep.Bias), Act: ep.Act, Drop: c.drop(ep.Drop)}
}

func (c *call) self(s kernels.Self) kernels.Self {
	if !s.On {
		return s
	}
	return kernels.Self{On: true, Col: c.ids(s.Col), W: c.mat(s.W)}
}

func (c *call) gather(ga kernels.Gather) kernels.Gather {
	return kernels.Gather{
		Scale: kernels.Scale{Row: c.mat(ga.Scale.Row), Col: c.mat(ga.Scale.Col)},
		Self:  c.self(ga.Self), W: c.mat(ga.W), Ep: c.epilogue(ga.Ep),
	}
}

func (c *call) attention(p kernels.Attention) kernels.Attention {
	p.Self, p.Drop = c.self(p.Self), kernels.Dropout{P: p.Drop.P, Key: p.Drop.Key}
	if p.Drop.P > 0 {
		p.SrcIDs, p.DstIDs = c.ids(p.SrcIDs), c.ids(p.DstIDs)
	}
	return p
}

// Wait implements kernels.Stream.
func (s *stream) Wait() error {
	queue := s.queue
	s.queue = nil
	if len(queue) > 0 {
		s.dev.mu.Lock()
		s.dev.waits++
		s.dev.mu.Unlock()
	}
	for _, c := range queue {
		err := s.dev.trip(c.op)
		for _, b := range c.blocks {
			s.dev.mu.Lock()
			if b.freed && err == nil {
				err = fmt.Errorf("a matrix was freed before the op had run")
			}
			s.dev.mu.Unlock()
		}
		if err == nil {
			s.dev.mu.Lock()
			s.dev.ops[c.op]++
			s.dev.mu.Unlock()
			c.run(s.host)
			err = s.host.Wait()
		}
		if err != nil {
			return fmt.Errorf("%s: %s (%s): %w", s.dev.Name(), c.op, strings.Join(c.shapes, ", "), err)
		}
	}
	return s.host.Wait()
}

// Close implements kernels.Stream.
func (s *stream) Close() error {
	err := s.Wait()
	if end := s.host.Close(); err == nil {
		err = end
	}
	return err
}
