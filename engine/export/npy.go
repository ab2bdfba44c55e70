package export

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"dorylus/kernels"
)

// writeNPY writes the one array that a .npy file can hold.
func writeNPY(w io.Writer, t *Table) error {
	b := bufio.NewWriterSize(w, 1<<16)
	switch {
	case t.Embedding != nil:
		matNPY(b, t.Embedding)
	case t.Scores != nil:
		matNPY(b, t.Scores)
	case t.Class != nil:
		headerNPY(b, "<i4", t.Rows)
		var buf [4]byte
		for _, c := range t.Class {
			binary.LittleEndian.PutUint32(buf[:], uint32(c))
			b.Write(buf[:])
		}
	default:
		headerNPY(b, "|i1", t.Rows, t.Sets.Cols)
		row := make([]byte, t.Sets.Cols)
		for v := range t.Rows {
			clear(row)
			for _, c := range t.set(v) {
				row[c] = 1
			}
			b.Write(row)
		}
	}
	return b.Flush()
}

func matNPY(b *bufio.Writer, m *kernels.Mat) {
	headerNPY(b, "<f4", m.Rows, m.Cols)
	row := make([]byte, 4*m.Cols)
	for v := range m.Rows {
		for i, x := range m.Row(v) {
			binary.LittleEndian.PutUint32(row[4*i:], math.Float32bits(x))
		}
		b.Write(row)
	}
}

// headerNPY writes the header of version 1.
func headerNPY(b *bufio.Writer, dtype string, shape ...int) { b.Write(HeaderNPY(dtype, shape...)) }

// HeaderNPY is what stands before the values in a .npy file of such an array, in numpy's
// words: "<f4", "|i1". Its length is a multiple of 64.
func HeaderNPY(dtype string, shape ...int) []byte {
	var dims strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&dims, "%d,", n)
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, dims.String())
	const prefix = 10 // mark, version, length
	head += strings.Repeat(" ", 63-(prefix+len(head))%64) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	return append(out, head...)
}
