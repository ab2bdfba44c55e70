package cuda

import "dorylus/kernels"

// ToBF16 implements kernels.Stream: what crosses to the host is half as wide.
func (q *queue) ToBF16(dst []uint16, src *kernels.Mat) {
	kernels.CheckToBF16(dst, src)
	o := q.op("ToBF16")
	s := o.mat(src)
	o.run(func(x *runner) error {
		return tiles(s.rows, s.cols, x.stage.bytes/2, func(t tile) error {
			p, err := x.stage.piece(x, 2*int64(t.rows())*int64(t.cols()))
			if err != nil {
				return err
			}
			err = x.each("dk_to_bf16", t.rows(), t.cols(), p.dev, int64(t.cols()), s.at(t), int64(t.rows()), int32(t.cols()), shiftOf(t.cols()))
			if err != nil {
				return err
			}
			return x.moveBack(p, func() {
				at := t.r0*s.cols + t.c0 // a tile is whole rows, or a part of one
				copy(bytesOf(dst[at:at+t.rows()*t.cols()]), p.host)
			})
		})
	})
}

// FromBF16 implements kernels.Stream.
func (q *queue) FromBF16(dst *kernels.Mat, src []uint16) {
	kernels.CheckFromBF16(dst, src)
	o := q.op("FromBF16")
	d := o.mat(dst)
	o.run(func(x *runner) error {
		return tiles(d.rows, d.cols, x.stage.bytes/2, func(t tile) error {
			p, err := x.stage.piece(x, 2*int64(t.rows())*int64(t.cols()))
			if err != nil {
				return err
			}
			at := t.r0*d.cols + t.c0
			copy(p.host, bytesOf(src[at:at+t.rows()*t.cols()]))
			if err := x.moveUp(p); err != nil {
				return err
			}
			return x.each("dk_from_bf16", t.rows(), t.cols(), d.at(t), p.dev, int64(t.cols()), int64(t.rows()), int32(t.cols()), shiftOf(t.cols()))
		})
	})
}
