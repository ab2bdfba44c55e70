package codec

import (
	"fmt"
	"hash/crc32"

	"dorylus/kernels"
)

// Decode fills dst, a host matrix of the frame's shape, from a frame that holds a whole
// tensor of floats; the padding of dst's rows is not touched. After an error dst's
// values are undefined.
func Decode(frame []byte, dst *kernels.Mat) error {
	h, err := wholeFrame(frame)
	if err != nil {
		return err
	}
	payload, err := h.verify(frame)
	if err != nil {
		return err
	}
	return h.rows(payload, dst)
}

// DecodeInt32 fills dst, which has the frame's length, from a frame of AppendInt32.
func DecodeInt32(frame []byte, dst []int32) error {
	if err := decodeVector(frame, Int32, len(dst), view(dst)); err != nil || little {
		return err
	}
	swap(view(dst))
	return nil
}

// DecodeBytes fills dst, which has the frame's length, from a frame of AppendBytes.
func DecodeBytes(frame []byte, dst []byte) error {
	return decodeVector(frame, Bytes, len(dst), dst)
}

func decodeVector(frame []byte, d DType, n int, dst []byte) error {
	h, err := wholeFrame(frame)
	if err != nil {
		return err
	}
	if h.DType != d || h.Total != n {
		return fmt.Errorf("decode frame: %d values of %v into %d of %v", h.Total, h.DType, n, d)
	}
	payload, err := h.verify(frame)
	if err != nil {
		return err
	}
	return h.values(payload, dst)
}

// wholeFrame reads the header of a frame that is no chunk.
func wholeFrame(frame []byte) (Header, error) {
	h, err := parse(frame)
	if err == nil && !h.Whole() {
		err = fmt.Errorf("decode frame: rows [%d,%d) of %d are a chunk; give it to an Assembler", h.First, h.First+h.Rows, h.Total)
	}
	return h, err
}

// fits says why dst cannot take rows x cols floats of h.
func (h *Header) fits(dst *kernels.Mat, rows int) error {
	if !h.DType.float() {
		return fmt.Errorf("decode frame: %d values of %v into a matrix of floats", h.Total, h.DType)
	}
	if dst.Rows != rows || dst.Cols != h.Cols {
		return fmt.Errorf("decode frame: a tensor of %d x %d into a matrix of %d x %d", rows, h.Cols, dst.Rows, dst.Cols)
	}
	if n := extent(dst); dst.Rows > 1 && dst.Stride < dst.Cols || n > len(dst.Host) {
		return fmt.Errorf("decode frame: a matrix of %d x %d, stride %d, has %d values in host memory, want %d",
			dst.Rows, dst.Cols, dst.Stride, len(dst.Host), n)
	}
	return nil
}

// rows decodes the payload into dst, h.Rows x h.Cols.
func (h *Header) rows(payload []byte, dst *kernels.Mat) error {
	if err := h.fits(dst, h.Rows); err != nil {
		return err
	}
	if h.Codec == None && h.Filter == 0 {
		unpackRows(dst, payload, h.DType)
		return nil
	}
	if all := packed(dst); all != nil && h.DType == FP32 && little {
		return h.values(payload, view(all))
	}
	raw := scratch(h.Raw)
	defer scratches.Put(raw)
	if err := h.values(payload, *raw); err != nil {
		return err
	}
	unpackRows(dst, *raw, h.DType)
	return nil
}

// values fills raw, of h.Raw bytes, with the packed values, and checks them against the
// checksum that the sender made of them.
func (h *Header) values(payload, raw []byte) error {
	if h.Codec == None && h.Filter == 0 {
		copy(raw, payload)
		return nil
	}
	width := h.DType.width()
	if h.Filter == 0 {
		n, err := decompress(h.Codec, raw, payload)
		if err != nil || n != len(raw) {
			return corrupt("%v: %d bytes decoded: %v", h, n, err)
		}
	} else {
		if h.Codec != None {
			buf := scratch(filteredMax(h.Filter, h.Raw, width))
			defer scratches.Put(buf)
			n, err := decompress(h.Codec, *buf, payload)
			if err != nil || h.Filter&Sparse == 0 && n != len(raw) {
				return corrupt("%v: %d bytes decoded: %v", h, n, err)
			}
			payload = (*buf)[:n]
		}
		tmp := scratch(h.Raw)
		defer scratches.Put(tmp)
		if err := undo(h.Filter, raw, *tmp, payload, width); err != nil {
			return err
		}
	}
	if sum := crc32.Checksum(raw, castagnoli); sum != h.Content {
		return corrupt("%v: values' checksum %08x, want %08x", h, sum, h.Content)
	}
	return nil
}
