package dataset

import (
	"context"
	"fmt"
	"math"
	"strconv"
)

// number decides what the vertices are and turns blocks, features and labels into raw.
func (e *edgeList) number(ctx context.Context) error {
	keyed := e.keys()
	switch {
	case e.vertices >= 0 && e.byName && keyed == nil:
		return fmt.Errorf("read %s: ids are names, but %s gives one row per vertex without ids; give it an id column, or number the vertices", e.file, e.declared)
	case e.vertices >= 0 && !e.byName:
		return e.numberByIndex()
	case e.byName:
		return e.numberByName(keyed)
	}
	return e.numberByValue(keyed)
}

// keys is the ids of the files with an id column, features first; nil: none has one.
func (e *edgeList) keys() []string {
	if e.features != nil && e.features.ids != nil {
		return e.features.ids
	}
	if e.labels != nil && e.labels.ids != nil {
		return e.labels.ids
	}
	return e.names
}

// edges fills raw's edges from the blocks through index, releasing each block.
func (e *edgeList) edges(index func(block *edgeBlock, i int) (int32, error)) error {
	total := 0
	for _, b := range e.blocks {
		total += b.len()
	}
	raw := e.raw
	raw.Src, raw.Dst = make([]int32, 0, total/2), make([]int32, 0, total/2)
	if e.weighted {
		raw.Weight = make([]float32, 0, total/2)
	}
	for k, b := range e.blocks {
		for i := 0; i < b.len(); i += 2 {
			u, err := index(b, i)
			if err != nil {
				return fmt.Errorf("read %s: edge record %d: %w", e.file, len(raw.Src), err)
			}
			v, err := index(b, i+1)
			if err != nil {
				return fmt.Errorf("read %s: edge record %d: %w", e.file, len(raw.Src), err)
			}
			raw.Src, raw.Dst = append(raw.Src, u), append(raw.Dst, v)
		}
		raw.Weight = append(raw.Weight, b.weight...)
		e.blocks[k] = nil
	}
	return nil
}

func (b *edgeBlock) len() int { return max(len(b.small), len(b.large)) }

// id is id i of a block of numbers.
func (e *edgeList) id(b *edgeBlock, i int) int64 {
	if b.interned {
		return e.ids.ids[b.small[i]]
	}
	return int64(b.small[i])
}

// numberByIndex takes ids as row numbers.
func (e *edgeList) numberByIndex() error {
	base, n := int64(e.in.opt.IDBase), int64(e.vertices)
	err := e.edges(func(b *edgeBlock, i int) (int32, error) {
		v := e.id(b, i) - base
		if v < 0 || v >= n {
			hint := "give a row for every vertex, or declare more vertices (--vertices)"
			if v == n && base == 0 {
				hint = "if ids start at 1, say so (--id-base=1); otherwise " + hint
			}
			return 0, fmt.Errorf("vertex %d is outside [%d,%d), the range that %s gives; %s", v+base, base, base+n, e.declared, hint)
		}
		return int32(v), nil
	})
	if err != nil {
		return err
	}
	e.raw.N = e.vertices
	if base == 1 {
		e.raw.IDs = numberedFrom(1, e.vertices)
	}
	return e.attach(func(id string) (int32, bool) {
		v, err := strconv.ParseInt(id, 10, 64)
		if err != nil || v < base || v-base >= n {
			return 0, false
		}
		return int32(v - base), true
	})
}

// numberedFrom is the names first, first+1, ... of n vertices.
func numberedFrom(first, n int) []string {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(first + i)
	}
	return decimals(ids)
}

// decimals is numbers as text, in one piece of memory.
func decimals(ids []int64) []string {
	size := 0
	var digits [20]byte
	for _, v := range ids {
		size += len(strconv.AppendInt(digits[:0], v, 10))
	}
	text := make([]byte, 0, size)
	names := make([]string, len(ids))
	for i, v := range ids {
		start := len(text)
		text = strconv.AppendInt(text, v, 10)
		names[i] = bytesAsString(text[start:])
	}
	return names
}

// numberByValue numbers the ids that occur in ascending order.
func (e *edgeList) numberByValue(keyed []string) error {
	also := make([]int64, len(keyed))
	for i, s := range keyed {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 {
			return fmt.Errorf("read %s: record %d: vertex %q is not a number, but those of %s are; make both the same, or say that ids are names (--names)", e.keyFile(), i, clip(s), e.file)
		}
		also[i] = v
	}
	if e.near(also) {
		return e.numberNear(also)
	}
	for _, b := range e.blocks {
		b.internIDs(&e.ids)
	}
	for _, v := range also {
		e.ids.number(v)
	}
	if _, err := vertexCount(e.file, int64(len(e.ids.ids))); err != nil {
		return err
	}
	rank, sorted := e.ids.ascending()
	e.nameByValue(sorted)
	if err := e.edges(func(b *edgeBlock, i int) (int32, error) { return rank[b.small[i]], nil }); err != nil {
		return err
	}
	return e.attach(func(id string) (int32, bool) {
		v, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return 0, false
		}
		k, ok := e.ids.lookup(v)
		if !ok {
			return 0, false
		}
		return rank[k], true
	})
}

// near says whether the largest id is so near to the count of ids that an array over
// all numbers up to it is smaller than a table of those that occur.
func (e *edgeList) near(also []int64) bool {
	top, count := int64(-1), int64(len(also))
	for _, b := range e.blocks {
		if b.interned {
			return false
		}
		top, count = max(top, b.max), count+int64(b.len())
	}
	for _, v := range also {
		top = max(top, v)
	}
	return top < 2*count+1<<16 && top < math.MaxInt32
}

// numberNear is numberByValue by an array.
func (e *edgeList) numberNear(also []int64) error {
	top := int64(-1)
	for _, b := range e.blocks {
		top = max(top, b.max)
	}
	for _, v := range also {
		top = max(top, v)
	}
	rank := make([]int32, top+1)
	for _, b := range e.blocks {
		for _, v := range b.small {
			rank[v] = 1
		}
	}
	for _, v := range also {
		rank[v] = 1
	}
	var sorted []int64
	for v, on := range rank {
		rank[v] = -1
		if on != 0 {
			rank[v] = int32(len(sorted))
			sorted = append(sorted, int64(v))
		}
	}
	e.nameByValue(sorted)
	if err := e.edges(func(b *edgeBlock, i int) (int32, error) { return rank[b.small[i]], nil }); err != nil {
		return err
	}
	return e.attach(func(id string) (int32, bool) {
		v, err := strconv.ParseInt(id, 10, 64)
		if err != nil || v < 0 || v > top || rank[v] < 0 {
			return 0, false
		}
		return rank[v], true
	})
}

// nameByValue sets the vertices: the ids that occur, ascending, which are their names
// unless they are 0..N-1.
func (e *edgeList) nameByValue(ids []int64) {
	raw := e.raw
	raw.N = len(ids)
	if raw.N == 0 || ids[raw.N-1] == int64(raw.N-1) {
		return
	}
	raw.IDs = decimals(ids)
	top := ids[raw.N-1]
	raw.Findings = append(raw.Findings, Finding{Code: "id-gaps", Severity: Info, Count: top + 1 - int64(raw.N), First: firstGap(ids),
		Effect: fmt.Sprintf("ids run to %d, but %d of them occur: only these are vertices, in ascending order", top, raw.N),
		Remedy: "declare the number of vertices (--vertices) if those that do not occur exist too"})
}

func firstGap(ids []int64) string {
	for i, v := range ids {
		if v != int64(i) {
			return fmt.Sprintf("id %d does not occur", i)
		}
	}
	return ""
}

func (e *edgeList) keyFile() string {
	if e.features != nil && e.features.ids != nil {
		return e.features.name
	}
	if e.labels != nil {
		return e.labels.name
	}
	return e.raw.Files[len(e.raw.Files)-1]
}

// numberByName numbers names: those with a row first, then those of the edges.
func (e *edgeList) numberByName(keyed []string) error {
	all := &e.seen
	vertex := func(k int32) int32 { return k } // of each name of the edges
	if len(keyed) > 0 {
		all = &interner{}
		for _, s := range keyed {
			all.number(s)
		}
		of := make([]int32, 0, e.seen.count)
		for _, s := range e.seen.list() {
			of = append(of, all.number(s))
		}
		vertex = func(k int32) int32 { return of[k] }
	}
	if err := e.edges(func(b *edgeBlock, i int) (int32, error) { return vertex(b.small[i]), nil }); err != nil {
		return err
	}
	e.raw.N, e.raw.IDs = all.count, all.list()
	if e.vertices >= 0 && e.raw.N != e.vertices {
		return fmt.Errorf("read %s: %d vertices have names, but there are %d by %s", e.file, e.raw.N, e.vertices, e.declared)
	}
	return e.attach(all.lookup)
}
