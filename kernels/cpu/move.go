//go:build cgo && amd64 && linux

package cpu

import "dorylus/kernels"

// Put copies in.
func (s *stream) Put(dst *kernels.Mat, src []float32) {
	kernels.CheckPut(dst, src)
	kernels.CheckHost("Put", dst)
	if !s.runs("Put") || dst.Cols == 0 {
		return
	}
	for r := range dst.Rows {
		copy(dst.Row(r), src[r*dst.Cols:])
	}
}

// Get copies out.
func (s *stream) Get(dst []float32, src *kernels.Mat) {
	kernels.CheckGet(dst, src)
	kernels.CheckHost("Get", src)
	if !s.runs("Get") || src.Cols == 0 {
		return
	}
	for r := range src.Rows {
		copy(dst[r*src.Cols:], src.Row(r))
	}
}

// Copy copies rows.
func (s *stream) Copy(dst, src *kernels.Mat) {
	kernels.CheckCopy(dst, src)
	kernels.CheckHost("Copy", dst, src)
	if !s.runs("Copy") || dst.Cols == 0 {
		return
	}
	for r := range dst.Rows {
		copy(dst.Row(r), src.Row(r))
	}
}

// Zero clears rows.
func (s *stream) Zero(dst *kernels.Mat) {
	kernels.CheckZero(dst)
	kernels.CheckHost("Zero", dst)
	if !s.runs("Zero") {
		return
	}
	zero(dst)
}

func zero(dst *kernels.Mat) {
	if dst.Cols == 0 {
		return
	}
	for r := range dst.Rows {
		clear(dst.Row(r))
	}
}

// GatherRows picks rows.
func (s *stream) GatherRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckGatherRows(dst, src, ids)
	kernels.CheckHost("GatherRows", dst, src)
	if !s.runs("GatherRows") || dst.Cols == 0 {
		return
	}
	s.table.GatherRows(src.Host, src.Stride, ids, dst.Host, dst.Stride, dst.Cols)
}

// ScatterRows places rows.
func (s *stream) ScatterRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckScatterRows(dst, src, ids)
	kernels.CheckHost("ScatterRows", dst, src)
	if !s.runs("ScatterRows") || dst.Cols == 0 {
		return
	}
	s.table.ScatterRows(src.Host, src.Stride, ids, dst.Host, dst.Stride, dst.Cols)
}

// ToBF16 rounds to bfloat16.
func (s *stream) ToBF16(dst []uint16, src *kernels.Mat) {
	kernels.CheckToBF16(dst, src)
	kernels.CheckHost("ToBF16", src)
	if !s.runs("ToBF16") || src.Cols == 0 {
		return
	}
	s.table.ToBF16(src.Host, src.Stride, dst, src.Rows, src.Cols)
}

// FromBF16 widens bfloat16.
func (s *stream) FromBF16(dst *kernels.Mat, src []uint16) {
	kernels.CheckFromBF16(dst, src)
	kernels.CheckHost("FromBF16", dst)
	if !s.runs("FromBF16") || dst.Cols == 0 {
		return
	}
	s.table.FromBF16(src, dst.Host, dst.Stride, dst.Rows, dst.Cols)
}
