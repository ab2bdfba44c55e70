package codec

import (
	"fmt"
	"slices"

	"dorylus/kernels"
)

// Assembler puts a tensor of floats together from chunks that arrive in any order, some
// of them more than once. It belongs to one goroutine.
type Assembler struct {
	dst   *kernels.Mat
	parts []part // by row, apart from each other
	have  int    // rows
}

// part is a chunk that has arrived.
type part struct {
	rows    kernels.Span
	dtype   DType
	content uint32
}

// NewAssembler is an Assembler that fills dst, a host matrix of the whole tensor: the
// first chunk's header says its shape.
func NewAssembler(dst *kernels.Mat) *Assembler { return &Assembler{dst: dst} }

// Add decodes a chunk into its rows of the matrix and returns them; they do not change
// any more, and may be read at once. fresh is false, and nothing is written, where the
// same rows arrived before with the same values, in whatever codec. An error leaves all
// rows that arrived before as they are: other values in the same rows, rows that overlap
// others in part, another shape, a corrupt frame.
func (a *Assembler) Add(frame []byte) (rows kernels.Span, fresh bool, err error) {
	h, err := parse(frame)
	if err != nil {
		return rows, false, err
	}
	if err := h.fits(a.dst, h.Total); err != nil {
		return rows, false, err
	}
	payload, err := h.verify(frame)
	if err != nil {
		return rows, false, err
	}
	p := part{kernels.Span{Lo: h.First, Hi: h.First + h.Rows}, h.DType, h.Content}
	at, found := slices.BinarySearchFunc(a.parts, p.rows.Lo, func(q part, lo int) int { return q.rows.Lo - lo })
	if found && a.parts[at] == p {
		return p.rows, false, nil
	}
	for _, q := range a.parts[max(at-1, 0):min(at+1, len(a.parts))] {
		if q.rows == p.rows {
			return rows, false, corrupt("rows [%d,%d) of %d arrived before with other values (%v %08x, now %v %08x)",
				p.rows.Lo, p.rows.Hi, h.Total, q.dtype, q.content, p.dtype, p.content)
		}
		if q.rows.Lo < p.rows.Hi && p.rows.Lo < q.rows.Hi {
			return rows, false, corrupt("rows [%d,%d) of %d overlap rows [%d,%d), which arrived before",
				p.rows.Lo, p.rows.Hi, h.Total, q.rows.Lo, q.rows.Hi)
		}
	}
	if h.Raw > 0 {
		if err := h.rows(payload, a.dst.Sub(p.rows)); err != nil {
			return rows, false, err
		}
	}
	a.parts = slices.Insert(a.parts, at, p)
	a.have += h.Rows
	return p.rows, true, nil
}

// Done says whether all rows have arrived; a matrix without rows waits for none.
func (a *Assembler) Done() bool { return a.have == a.dst.Rows }

// Missing lists the rows that have not arrived, in order: what to ask for again.
func (a *Assembler) Missing() []kernels.Span {
	var gaps []kernels.Span
	at := 0
	for _, p := range a.parts {
		if p.rows.Lo > at {
			gaps = append(gaps, kernels.Span{Lo: at, Hi: p.rows.Lo})
		}
		at = p.rows.Hi
	}
	if at < a.dst.Rows {
		gaps = append(gaps, kernels.Span{Lo: at, Hi: a.dst.Rows})
	}
	return gaps
}

// Err is nil when all rows have arrived, and else names the first that have not.
func (a *Assembler) Err() error {
	gaps := a.Missing()
	if len(gaps) == 0 {
		return nil
	}
	return fmt.Errorf("assemble tensor of %d x %d: %d of %d rows have arrived, rows [%d,%d) are the first of %d gaps",
		a.dst.Rows, a.dst.Cols, a.have, a.dst.Rows, gaps[0].Lo, gaps[0].Hi, len(gaps))
}
