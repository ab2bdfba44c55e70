package cuda

import (
	"dorylus/kernels"
	"dorylus/kernels/cuda/internal/watch"
)

// partBytes is about how much scratch memory the chunks of long rows may take at a
// time.
const partBytes = 64 << 20

// batch is the end of the longest run of long rows [i,batch), up to last, of at most
// most chunks; one row at least.
func (l longRows) batch(i, last int, most int64) int {
	j := i + 1
	for j < last && l.count(i, j+1) <= most {
		j++
	}
	return j
}

// inParts calls f for the long rows of a span, some at a time. part has room for a row
// of cols values for each of their chunks, and, from row extra on, one for each row.
func (x *runner) inParts(l longRows, rows kernels.Span, cols int, f func(part mat, extra int64, i0, i1 int) error) error {
	first, last := l.cut(rows)
	most := int64(partBytes)
	if watch.Parts != 0 {
		most = watch.Parts
	}
	most /= 4 * int64(kernels.PadCols(cols))
	var need int64
	for i := first; i < last; {
		j := l.batch(i, last, most)
		need = max(need, l.count(i, j)+int64(j-i))
		i = j
	}
	if need == 0 {
		return nil
	}
	part, err := x.scratchMat(int(need), cols)
	if err != nil {
		return err
	}
	for i := first; i < last; {
		j := l.batch(i, last, most)
		if err := f(part, l.count(i, j), i, j); err != nil {
			return err
		}
		i = j
	}
	return nil
}

// chunkArgs are the arguments list, chunks, i0, i1 of kernels that work on chunks.
func (l longRows) chunkArgs(i0, i1 int) []any {
	return []any{l.on, l.chunksOn, int64(i0), int64(i1)}
}
