package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
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

// id is number i of a block of numbers.
func (b *edgeBlock) id(i int) int64 {
	if b.large != nil {
		return b.large[i]
	}
	return int64(b.small[i])
}

// numberByIndex takes ids as row numbers.
func (e *edgeList) numberByIndex() error {
	base, n := int64(e.in.opt.IDBase), int64(e.vertices)
	err := e.edges(func(b *edgeBlock, i int) (int32, error) {
		v := b.id(i) - base
		if v < 0 || v >= n {
			hint := "give a row for every vertex, or declare more vertices"
			if v == n && base == 0 {
				hint = "if ids start at 1, say so; otherwise " + hint
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

// numberedFrom is the names first, first+1, ... of n vertices, in one piece of memory.
func numberedFrom(first, n int) []string {
	var text []byte
	end := make([]int, n)
	for i := range end {
		text = strconv.AppendInt(text, int64(first+i), 10)
		end[i] = len(text)
	}
	all := string(text)
	ids := make([]string, n)
	start := 0
	for i, e := range end {
		ids[i] = all[start:e]
		start = e
	}
	return ids
}

// numberByValue numbers the ids that occur in ascending order.
func (e *edgeList) numberByValue(keyed []string) error {
	seen := newIDSet(e.maxID(), e.totalIDs())
	for _, b := range e.blocks {
		for i := range b.len() {
			seen.add(b.id(i))
		}
	}
	for i, s := range keyed {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 {
			return fmt.Errorf("read %s: record %d: vertex %q is not a number, but those of %s are; make both the same, or say that ids are names", e.keyFile(), i, clip(s), e.file)
		}
		seen.add(v)
	}
	ids, err := seen.number(e.file)
	if err != nil {
		return err
	}
	raw := e.raw
	raw.N = len(ids)
	dense := raw.N == 0 || ids[raw.N-1] == int64(raw.N-1)
	if !dense {
		raw.IDs = make([]string, raw.N)
		for i, v := range ids {
			raw.IDs[i] = strconv.FormatInt(v, 10)
		}
		top := ids[raw.N-1]
		raw.Findings = append(raw.Findings, Finding{Code: "id-gaps", Severity: Info, Count: top + 1 - int64(raw.N), First: firstGap(ids),
			Effect: fmt.Sprintf("ids run to %d, but %d of them occur: only these are vertices, in ascending order", top, raw.N),
			Remedy: "declare the number of vertices if those that do not occur exist too"})
	}
	if err := e.edges(func(b *edgeBlock, i int) (int32, error) { return seen.rank(b.id(i)), nil }); err != nil {
		return err
	}
	return e.attach(func(id string) (int32, bool) {
		v, err := strconv.ParseInt(id, 10, 64)
		if err != nil || !seen.has(v) {
			return 0, false
		}
		return seen.rank(v), true
	})
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

func (e *edgeList) maxID() int64 {
	top := int64(-1)
	for _, b := range e.blocks {
		top = max(top, b.max)
	}
	return top
}

func (e *edgeList) totalIDs() int64 {
	n := int64(0)
	for _, b := range e.blocks {
		n += int64(b.len())
	}
	return n
}

// numberByName numbers names: those with a row first, then those of the edges.
func (e *edgeList) numberByName(keyed []string) error {
	var all interner
	for _, s := range keyed {
		all.number(s)
	}
	if len(keyed) == 0 {
		all = e.seen
	}
	vertex := make([]int32, len(e.seen.names)) // of each name of the edges
	for i, s := range e.seen.names {
		vertex[i] = all.number(s)
	}
	if err := e.edges(func(b *edgeBlock, i int) (int32, error) { return vertex[b.small[i]], nil }); err != nil {
		return err
	}
	e.raw.N, e.raw.IDs = len(all.names), all.names
	if e.vertices >= 0 && e.raw.N != e.vertices {
		return fmt.Errorf("read %s: %d vertices have names, but there are %d by %s", e.file, e.raw.N, e.vertices, e.declared)
	}
	return e.attach(all.lookup)
}

// idSet is a set of numbers that can say how many smaller ones it has: an array
// where the largest is near the count, else a map.
type idSet struct {
	dense  []int32
	sparse map[int64]int32
}

func newIDSet(top, count int64) *idSet {
	if top < 2*count+1<<16 && top < math.MaxInt32 {
		return &idSet{dense: make([]int32, top+1)}
	}
	return &idSet{sparse: map[int64]int32{}}
}

func (s *idSet) add(v int64) {
	if s.sparse == nil {
		if v < int64(len(s.dense)) {
			s.dense[v] = 1
			return
		}
		if v < 2*int64(len(s.dense))+1024 {
			s.dense = append(s.dense, make([]int32, v+1-int64(len(s.dense)))...)
			s.dense[v] = 1
			return
		}
		s.sparse = map[int64]int32{}
		for u, on := range s.dense {
			if on != 0 {
				s.sparse[int64(u)] = 1
			}
		}
		s.dense = nil
	}
	s.sparse[v] = 1
}

// number gives every member its rank and returns the members, ascending.
func (s *idSet) number(file string) ([]int64, error) {
	var ids []int64
	if s.sparse == nil {
		for v, on := range s.dense {
			s.dense[v] = -1
			if on != 0 {
				s.dense[v] = int32(len(ids))
				ids = append(ids, int64(v))
			}
		}
		return ids, nil
	}
	if _, err := vertexCount(file, int64(len(s.sparse))); err != nil {
		return nil, err
	}
	for v := range s.sparse {
		ids = append(ids, v)
	}
	slices.Sort(ids)
	for i, v := range ids {
		s.sparse[v] = int32(i)
	}
	return ids, nil
}

func (s *idSet) has(v int64) bool {
	if s.sparse == nil {
		return v >= 0 && v < int64(len(s.dense)) && s.dense[v] >= 0
	}
	_, ok := s.sparse[v]
	return ok
}

func (s *idSet) rank(v int64) int32 {
	if s.sparse == nil {
		return s.dense[v]
	}
	return s.sparse[v]
}
