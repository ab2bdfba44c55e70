package opaque

import "dorylus/kernels"

// Put implements kernels.Stream.
func (s *stream) Put(dst *kernels.Mat, src []float32) {
	kernels.CheckPut(dst, src)
	c := s.call("Put")
	d := c.mat(dst)
	s.dev.count("put", 4*len(src))
	s.add(c, func(h kernels.Stream) { h.Put(d, src) })
}

// Get implements kernels.Stream.
func (s *stream) Get(dst []float32, src *kernels.Mat) {
	kernels.CheckGet(dst, src)
	c := s.call("Get")
	m := c.mat(src)
	s.dev.count("get", 4*len(dst))
	s.add(c, func(h kernels.Stream) { h.Get(dst, m) })
}

// Copy implements kernels.Stream; either side may be in host memory.
func (s *stream) Copy(dst, src *kernels.Mat) {
	kernels.CheckCopy(dst, src)
	c := s.call("Copy")
	d, m := c.any(dst), c.any(src)
	switch bytes := 4 * dst.Rows * dst.Cols; {
	case src.Host != nil && dst.Host == nil:
		s.dev.count("rows up", bytes)
	case dst.Host != nil && src.Host == nil:
		s.dev.count("rows down", bytes)
	case dst.Host != nil && bytes > 0:
		d = c.mat(dst) // from host to host: no business of the device
	}
	s.add(c, func(h kernels.Stream) { h.Copy(d, m) })
}

// Zero implements kernels.Stream.
func (s *stream) Zero(dst *kernels.Mat) {
	kernels.CheckZero(dst)
	c := s.call("Zero")
	d := c.mat(dst)
	s.add(c, func(h kernels.Stream) { h.Zero(d) })
}

// GatherRows implements kernels.Stream; src may be in host memory.
func (s *stream) GatherRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckGatherRows(dst, src, ids)
	c := s.call("GatherRows")
	d, m := c.mat(dst), c.any(src)
	if src.Host != nil {
		s.dev.count("rows up", 4*dst.Rows*dst.Cols) // the host picks them
	} else {
		ids = c.ids(ids)
	}
	s.add(c, func(h kernels.Stream) { h.GatherRows(d, m, ids) })
}

// ScatterRows implements kernels.Stream.
func (s *stream) ScatterRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckScatterRows(dst, src, ids)
	c := s.call("ScatterRows")
	d, m, at := c.mat(dst), c.mat(src), c.ids(ids)
	s.add(c, func(h kernels.Stream) { h.ScatterRows(d, m, at) })
}

// ToBF16 implements kernels.Stream.
func (s *stream) ToBF16(dst []uint16, src *kernels.Mat) {
	kernels.CheckToBF16(dst, src)
	c := s.call("ToBF16")
	m := c.mat(src)
	s.dev.count("get", 2*len(dst))
	s.add(c, func(h kernels.Stream) { h.ToBF16(dst, m) })
}

// FromBF16 implements kernels.Stream.
func (s *stream) FromBF16(dst *kernels.Mat, src []uint16) {
	kernels.CheckFromBF16(dst, src)
	c := s.call("FromBF16")
	d := c.mat(dst)
	s.dev.count("put", 2*len(src))
	s.add(c, func(h kernels.Stream) { h.FromBF16(d, src) })
}
