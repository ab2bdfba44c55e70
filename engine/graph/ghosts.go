package graph

import (
	"context"
	"fmt"
	"math/bits"

	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Ghosts are the rows of other partitions that one partition reads.
type Ghosts struct {
	// Forward are the sources of its rows' in-edges, whose rows it gathers; Backward the
	// destinations of its rows' out-edges, whose gradients it gathers. They are the
	// same Side where the graph is symmetric.
	Forward, Backward *Side
}

// Side is one direction of Ghosts.
type Side struct {
	// Rows[p] is the number of different rows of partition p, Edges[p] the number of
	// edges to them. Both are 0 for the partition itself.
	Rows, Edges []int64
	seen        []uint64 // a bit for each store row
}

// Total is the number of ghost rows and of cut edges.
func (s *Side) Total() (rows, edges int64) {
	for p := range s.Rows {
		rows += s.Rows[p]
		edges += s.Edges[p]
	}
	return rows, edges
}

// List are the ghosts among some store rows, ascending.
func (s *Side) List(rows kernels.Span) []int32 {
	list := []int32{}
	for w := rows.Lo / 64; w*64 < rows.Hi; w++ {
		for word := s.seen[w]; word != 0; word &= word - 1 {
			if v := w*64 + bits.TrailingZeros64(word); rows.Lo <= v && v < rows.Hi {
				list = append(list, int32(v))
			}
		}
	}
	return list
}

// FindGhosts finds the ghosts of partition own of those that cut the blocks of st, as
// Partition gives them. An edge of weight 0 counts like any other, as a gather reads
// its row. It reads own's edges only, which must have been checked, and takes a bit of memory for each vertex and
// direction.
func FindGhosts(ctx context.Context, st *store.Store, cuts []task.Range, own int) (*Ghosts, error) {
	forward, err := findSide(ctx, st, st.In, cuts, own)
	if err != nil {
		return nil, fmt.Errorf("find the ghosts of partition %d of %s: %w", own, st.Meta.Name, err)
	}
	backward := forward
	if st.Out != st.In {
		if backward, err = findSide(ctx, st, st.Out, cuts, own); err != nil {
			return nil, fmt.Errorf("find the ghosts of partition %d of %s: %w", own, st.Meta.Name, err)
		}
	}
	return &Ghosts{Forward: forward, Backward: backward}, nil
}

func findSide(ctx context.Context, st *store.Store, g *kernels.CSR, cuts []task.Range, own int) (*Side, error) {
	n := st.Meta.Vertices
	s := &Side{Rows: make([]int64, len(cuts)), Edges: make([]int64, len(cuts)), seen: make([]uint64, (n+63)/64)}
	end := make([]int32, len(cuts))
	for p, r := range cuts {
		end[p] = int32(BlockSpan(&st.Meta, r).Hi)
	}
	rows := BlockSpan(&st.Meta, cuts[own])
	for v := rows.Lo; v < rows.Hi; v++ {
		if v%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		p := 0 // the owner: columns ascend
		for _, u := range g.Col[g.RowPtr[v]:g.RowPtr[v+1]] {
			for u >= end[p] {
				p++
			}
			if p == own {
				continue
			}
			s.Edges[p]++
			if w, b := u/64, uint64(1)<<(u%64); s.seen[w]&b == 0 {
				s.seen[w] |= b
				s.Rows[p]++
			}
		}
	}
	return s, nil
}

// Survey tells what partitions cuts of st amount to. train are the store rows of the
// training vertices, ascending, those of split. It reads all edges.
func Survey(ctx context.Context, st *store.Store, split string, train []int32, cuts []task.Range) (*store.PartitionsMeta, error) {
	loads := Loads(st, train)
	m := &store.PartitionsMeta{Split: split, Parts: make([]store.PartitionMeta, len(cuts))}
	for i, r := range cuts {
		g, err := FindGhosts(ctx, st, cuts, i)
		if err != nil {
			return nil, err
		}
		l := loads[r.Lo].Between(loads[r.Hi])
		p := &m.Parts[i]
		*p = store.PartitionMeta{FirstBlock: r.Lo, Blocks: r.Len(), Rows: l.Rows, Edges: l.Edges, Train: l.Train, Bytes: l.Bytes}
		p.GhostsForward, p.CutIn = g.Forward.Total()
		p.GhostsBackward, p.CutOut = g.Backward.Total()
		p.GhostBytes = 4 * (p.GhostsForward + p.GhostsBackward)
		m.CutEdges += p.CutIn
		m.GhostBytes += p.GhostBytes
	}
	if st.Meta.Edges > 0 {
		m.CutFraction = float64(m.CutEdges) / float64(st.Meta.Edges)
	}
	return m, nil
}
