package shard

import (
	"fmt"
	"slices"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
)

// works lists, in order, the buffers that the pass's tensor steps name, but for sparse
// features.
func (s *Shard) works(prog *model.Program) []int {
	var out []int
	for i := range prog.Steps {
		step := &prog.Steps[i]
		if !step.Kind.Tensor() || !s.Train && i >= prog.Forward {
			continue
		}
		out = append(append(out, step.In...), step.Out...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(b int) bool { return b == model.X && s.Sparse != nil })
}

// shape is that of the memory that a buffer gets.
func (s *Shard) shape(prog *model.Program, b int) (rows, cols int) {
	if prog.Bufs[b].Edges {
		return 1, max(len(s.Sparse.Col), 1)
	}
	return s.Rows(Level(prog, b)), prog.Bufs[b].Cols
}

// Bytes is the memory that the shard takes once it is open: lists, constant rows, sparse
// matrices and padded buffers.
func (s *Shard) Bytes(prog *model.Program) int64 {
	var n int64
	for _, v := range s.vectors() {
		n += 4 * int64(len(*v))
	}
	for _, g := range []*kernels.CSR{s.Targets, s.Sparse} {
		if g != nil {
			n += 8*int64(len(g.RowPtr)) + 4*int64(len(g.Col)) + 4*int64(len(g.Val))
		}
	}
	for _, m := range append(slices.Clone(s.Const), s.ClassW) {
		if m != nil {
			n += padded(m.Rows, m.Cols)
		}
	}
	for _, b := range s.works(prog) {
		if !prog.Bufs[b].Const {
			n += padded(s.shape(prog, b))
		}
	}
	return n
}

// padded is the memory of a matrix on a device, in bytes.
func padded(rows, cols int) int64 { return 4 * int64(rows) * int64(kernels.PadCols(cols)) }

// Fits says what is wrong with a shard that has been decoded, for the program of a
// configuration: lists of another length than its rows, numbers of rows that are not
// there, matrices of other shapes than the program's, what is missing, and more memory
// than limit, in bytes. Nothing that Fits accepts lets an op of the program read or write
// beside its matrices.
func (s *Shard) Fits(cfg *model.Config, prog *model.Program, limit int64) error {
	for _, check := range []func(*model.Config, *model.Program) error{s.fitsPass, s.fitsLists, s.fitsLabels, s.fitsMatrices} {
		if err := check(cfg, prog); err != nil {
			return fmt.Errorf("the shard of interval %d: %w", s.Interval, err)
		}
	}
	if n := s.Bytes(prog); n > limit {
		return fmt.Errorf("the shard of interval %d needs %d bytes, %d are there: use more --intervals, or workers with more memory", s.Interval, n, limit)
	}
	return nil
}

func (s *Shard) fitsPass(cfg *model.Config, prog *model.Program) error {
	if int(s.Pass) >= engine.Passes || s.Train != (s.Pass == engine.Training) {
		return fmt.Errorf("pass %d with training %v", s.Pass, s.Train)
	}
	if len(s.Ptr) != prog.Levels || len(s.Const) != len(prog.Bufs) {
		return fmt.Errorf("it has %d levels and %d buffers, the model %d and %d", len(s.Ptr), len(s.Const), prog.Levels, len(prog.Bufs))
	}
	if (s.Sparse != nil) != cfg.Sparse {
		return fmt.Errorf("it has sparse features: %v, the model: %v", s.Sparse != nil, cfg.Sparse)
	}
	return nil
}

// fitsLists checks ids, self and seen.
func (s *Shard) fitsLists(_ *model.Config, prog *model.Program) error {
	for k, v := range s.IDs {
		if v != nil && len(v) != s.Rows(k) {
			return fmt.Errorf("level %d has %d ids, want one for each of its %d rows", k, len(v), s.Rows(k))
		}
	}
	for k, v := range s.Self {
		if v == nil {
			continue
		}
		if len(v) != s.Rows(k+1) {
			return fmt.Errorf("hop %d has %d rows of its vertices, want one for each of its upper level's %d rows", k, len(v), s.Rows(k+1))
		}
		if err := within(v, 0, s.Rows(k)); err != nil {
			return fmt.Errorf("rows of the vertices of hop %d: %w", k, err)
		}
	}
	for b, levels := range s.Seen {
		for k, v := range levels {
			if err := within(v, 0, s.Ptr[k][b+1]-s.Ptr[k][b]); err != nil {
				return fmt.Errorf("rows of block %d in level %d that the loss sees: %w", b, k, err)
			}
		}
	}
	return nil
}

// fitsLabels checks what the loss reads.
func (s *Shard) fitsLabels(cfg *model.Config, prog *model.Program) error {
	rows, classes := s.Rows(prog.Levels-1), prog.Bufs[prog.Output].Cols
	if (s.Labels != nil || s.Train && rows > 0) && len(s.Labels) != rows {
		return fmt.Errorf("it has %d labels, want one for each of the last level's %d rows", len(s.Labels), rows)
	}
	if err := within(s.Labels, -1, classes); err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	if cfg.MultiLabel && s.Train && s.Targets == nil {
		return fmt.Errorf("it has no targets, the model has several labels a vertex")
	}
	if s.Targets != nil && (s.Targets.Rows() != rows || s.Targets.Cols != classes) {
		return fmt.Errorf("its targets are %d x %d, want %d x %d", s.Targets.Rows(), s.Targets.Cols, rows, classes)
	}
	if s.ClassW != nil && (s.ClassW.Rows != 1 || s.ClassW.Cols != classes) {
		return fmt.Errorf("its class weights are %d x %d, want 1 x %d", s.ClassW.Rows, s.ClassW.Cols, classes)
	}
	return nil
}

// fitsMatrices checks features and constant rows.
func (s *Shard) fitsMatrices(_ *model.Config, prog *model.Program) error {
	if x := s.Sparse; x != nil && (x.Rows() != s.Rows(0) || x.Cols != prog.Bufs[model.X].Cols) {
		return fmt.Errorf("its features are %d x %d, want %d x %d", x.Rows(), x.Cols, s.Rows(0), prog.Bufs[model.X].Cols)
	}
	for b, m := range s.Const {
		of := &prog.Bufs[b]
		switch {
		case m == nil:
		case !of.Const:
			return fmt.Errorf("it has rows of buffer %s, which is not constant", of.Name)
		case m.Rows != s.Rows(Level(prog, b)) || m.Cols != of.Cols:
			return fmt.Errorf("buffer %s is %d x %d, want %d x %d", of.Name, m.Rows, m.Cols, s.Rows(Level(prog, b)), of.Cols)
		}
	}
	for _, b := range s.works(prog) {
		of := &prog.Bufs[b]
		if of.Const && s.Const[b] == nil {
			return fmt.Errorf("the rows of buffer %s are missing", of.Name)
		}
		if of.Edges && s.Sparse == nil {
			return fmt.Errorf("buffer %s is one of sparse features, and there are none", of.Name)
		}
	}
	return nil
}

// within checks that numbers lie in [lo,hi).
func within(v []int32, lo, hi int) error {
	for i, x := range v {
		if int(x) < lo || int(x) >= hi {
			return fmt.Errorf("number %d is %d, want one in [%d,%d)", i, x, lo, hi)
		}
	}
	return nil
}
