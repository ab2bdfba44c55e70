package dataset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// pickler writes the few opcodes that Python 2's protocol 2 uses for data sets.
type pickler struct{ bytes.Buffer }

func (p *pickler) int(v int) {
	p.WriteByte('J')
	binary.Write(p, binary.LittleEndian, int32(v))
}

func (p *pickler) str(s string) {
	p.WriteByte('T')
	binary.Write(p, binary.LittleEndian, int32(len(s)))
	p.WriteString(s)
}

func (p *pickler) array(code string, shape []int, values any) {
	p.WriteString("cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR")
	p.WriteString("(K\x01(")
	for _, n := range shape {
		p.int(n)
	}
	p.WriteString("tcnumpy\ndtype\nU\x02" + code + "K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89")
	var data bytes.Buffer
	binary.Write(&data, binary.LittleEndian, values)
	p.str(data.String())
	p.WriteString("tb")
}

func pickled(write func(p *pickler)) string {
	p := &pickler{}
	p.WriteString("\x80\x02")
	write(p)
	p.WriteByte('.')
	return p.String()
}

func pickledMatrix(rows, cols int, ptr, col []int32) string {
	return pickled(func(p *pickler) {
		p.WriteString("cscipy.sparse.csr\ncsr_matrix\n)\x81}(")
		p.str("_shape")
		p.int(rows)
		p.int(cols)
		p.WriteByte('\x86')
		p.str("indptr")
		p.array("i4", []int{len(ptr)}, ptr)
		p.str("indices")
		p.array("i4", []int{len(col)}, col)
		p.str("data")
		p.array("f4", []int{len(col)}, slices.Repeat([]float32{1}, len(col)))
		p.WriteString("ub")
	})
}

func pickledOneHot(classes int, labels ...int) string {
	hot := make([]int32, classes*len(labels))
	for i, k := range labels {
		hot[i*classes+k] = 1
	}
	return pickled(func(p *pickler) { p.array("i4", []int{len(labels), classes}, hot) })
}

func pickledGraph(lists [][]int) string {
	return pickled(func(p *pickler) {
		p.WriteString("ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(")
		for v, list := range lists {
			p.int(v)
			p.WriteString("](")
			for _, u := range list {
				p.int(u)
			}
			p.WriteByte('e')
		}
		p.WriteByte('u')
	})
}

// tinyPlanetoid is six vertices: four with rows in allx, then 5 and 4 by test.index.
func tinyPlanetoid() map[string]string {
	return map[string]string{
		"ind.tiny.x":          "",
		"ind.tiny.allx":       pickledMatrix(4, 3, []int32{0, 1, 2, 2, 3}, []int32{2, 0, 1}),
		"ind.tiny.tx":         pickledMatrix(2, 3, []int32{0, 2, 3}, []int32{1, 0, 2}),
		"ind.tiny.y":          pickledOneHot(2, 0, 1),
		"ind.tiny.ally":       pickledOneHot(2, 0, 1, 1, 0),
		"ind.tiny.ty":         pickledOneHot(2, 1, 0),
		"ind.tiny.graph":      pickledGraph([][]int{{1, 2}, {0}, {0, 5}, {}, {4}, {2}}),
		"ind.tiny.test.index": "5\n4\n",
	}
}

// zipOf is a .npz of the given members, every other one deflated.
func zipOf(members map[string]string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i, name := range slices.Sorted(maps.Keys(members)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: []uint16{zip.Store, zip.Deflate}[i%2]})
		if err == nil {
			_, err = w.Write([]byte(members[name]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

func vector(descr string, n int, values any) string {
	return npyBytes(descr, fmt.Sprintf("(%d,)", n), values)
}

// tinyBench is four vertices in gnn-benchmark's layout, columns unsorted.
func tinyBench() map[string]string {
	return map[string]string{
		"adj_data":     vector("<f4", 3, []float32{1, 2, 1}),
		"adj_indices":  vector("<i4", 3, []int32{2, 1, 0}),
		"adj_indptr":   vector("<i4", 5, []int32{0, 2, 2, 3, 3}),
		"adj_shape":    vector("<i8", 2, []int64{4, 4}),
		"attr_data":    vector("<f4", 3, []float32{1, 2, 3}),
		"attr_indices": vector("<i4", 3, []int32{1, 0, 1}),
		"attr_indptr":  vector("<i8", 5, []int64{0, 2, 3, 3, 3}),
		"attr_shape":   vector("<i8", 2, []int64{4, 2}),
		"labels":       vector("|i1", 4, []int8{0, 1, 2, -1}),
		"class_names":  vector("|O", 3, []byte("\x80\x04never")),
		"node_names":   vector("<U2", 4, []uint32{'a', 0, 'b', 0, 'ç', 0, 'd', 'd'}),
	}
}

// tinyHetero is three vertices in the heterophilous layout.
func tinyHetero() map[string]string {
	return map[string]string{
		"edges":         npyBytes("<i8", "(2, 2)", []int64{0, 1, 1, 2}),
		"node_features": npyBytes("<f4", "(3, 2)", []float32{1, 2, 3, 4, 5, 6}),
		"node_labels":   vector("<i8", 3, []int64{0, 1, 0}),
		"train_masks":   npyBytes("|b1", "(2, 3)", []bool{true, false, false, false, true, false}),
		"val_masks":     npyBytes("|b1", "(2, 3)", []bool{false, true, false, true, false, false}),
		"test_masks":    npyBytes("|b1", "(2, 3)", []bool{false, false, true, false, false, true}),
	}
}
