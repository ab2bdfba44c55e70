package dataset

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// roleFiles are the usual names of the files of a split, by role.
var roleFiles = [3][]string{
	{"train_mask", "train", "train_idx", "train_ids", "idx_train"},
	{"val_mask", "val", "valid", "val_idx", "valid_idx", "val_ids", "validation", "valid_mask", "idx_val"},
	{"test_mask", "test", "test_idx", "test_ids", "idx_test"},
}

var maskExts = []string{".npy", ".txt", ".csv"}

// readMasks reads splits beside an edge list: splits.json, or a file for each of
// train, val and test. A .npy of bool is a mask; a .npy of numbers and a text hold
// vertices, one per line, by the user's ids.
func (e *edgeList) readMasks(ctx context.Context) error {
	in := e.in
	if in.opt.Masks != "" {
		sub, err := newInput(in.opt.Masks, in.opt)
		if err != nil {
			return err
		}
		if !sub.dir {
			return fmt.Errorf("open %s: masks are a folder with train, val and test files; a JSON file of splits is another option", in.opt.Masks)
		}
		in = sub
	} else if !in.dir {
		return nil
	}
	raw := e.raw
	if f := in.sidecar([]string{"splits", "split"}, []string{".json"}); f != "" && in.opt.SplitFile == "" {
		b, err := in.open(f)
		if err != nil {
			return err
		}
		defer b.Close()
		data, err := b.bytes(1 << 32)
		if err != nil {
			return err
		}
		raw.Files = append(raw.Files, f)
		raw.Splits, err = parseSplits(f, data, raw.N)
		return err
	}
	s := Split{Name: "file"}
	found := false
	for r := range 3 {
		f := in.sidecar(roleFiles[r], maskExts)
		if f == "" {
			continue
		}
		ids, err := e.readRole(ctx, in, f)
		if err != nil {
			return err
		}
		raw.Files = append(raw.Files, path.Base(f))
		found = true
		if r == 0 && e.every10th && in.sidecar(roleFiles[1], maskExts) == "" {
			if ids, err = e.takeEvery10th(&s, ids); err != nil {
				return fmt.Errorf("read %s: %w", f, err)
			}
		}
		if err := takeIDs(s.role(r), ids, raw.N); err != nil {
			return fmt.Errorf("read %s: %w", f, err)
		}
	}
	if found {
		raw.Splits = []Split{s}
	}
	return nil
}

// takeEvery10th moves every tenth of the training vertices, from the first in the
// file's order, to validation and returns the others.
func (e *edgeList) takeEvery10th(s *Split, ids []int64) (train []int64, err error) {
	var val []int64
	for i, v := range ids {
		if i%10 == 0 {
			val = append(val, v)
		} else {
			train = append(train, v)
		}
	}
	e.raw.Findings = append(e.raw.Findings, Finding{Code: "validation-taken", Severity: Info, Count: int64(len(val)),
		First:  "the first vertex of the training file",
		Effect: "the source names no validation vertices: every tenth training vertex validates and does not train",
		Remedy: "give a file val.txt to choose them yourself"})
	return train, takeIDs(&s.Val, val, e.raw.N)
}

// readRole reads one file's vertices.
func (e *edgeList) readRole(ctx context.Context, in *input, name string) ([]int64, error) {
	b, err := in.open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if extOf(name) == ".npy" {
		return e.readRoleNPY(b)
	}
	text, err := b.unpacked()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	l, first, rest, err := sniff(b.name, text)
	if err != nil || first == nil {
		return nil, err
	}
	if l.cols != 1 {
		return nil, fmt.Errorf("read %s: line %d: %d columns; such a file names one vertex per line", b.name, l.skip+1, l.cols)
	}
	find := e.raw.finder(e.in.opt.IDBase)
	var ids []int64
	err = eachRow(ctx, b.name, rest, l, func(fields []string) error {
		id := strings.TrimSpace(fields[0])
		v, ok := find(id)
		if !ok {
			return fmt.Errorf("vertex %q does not exist; name vertices as the edges do", clip(id))
		}
		ids = append(ids, int64(v))
		return nil
	})
	return ids, err
}

func (e *edgeList) readRoleNPY(b *blob) ([]int64, error) {
	a, err := openNPY(b)
	if err != nil {
		return nil, err
	}
	if a.kind != 'b' {
		return a.int64s()
	}
	if a.n != e.raw.N {
		return nil, rowsMismatch(b.name, "mask values", a.n, e.raw.N)
	}
	on, err := a.bools()
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, v := range maskIDs(on) {
		ids = append(ids, int64(v))
	}
	return ids, nil
}

// finder maps a user's id to its vertex.
func (r *Raw) finder(base int) func(id string) (int, bool) {
	if r.IDs == nil {
		return func(id string) (int, bool) {
			v, err := strconv.Atoi(id)
			return v - base, err == nil && v >= base && v-base < r.N
		}
	}
	place := make(map[string]int, r.N)
	for v, s := range slices.Backward(r.IDs) {
		place[s] = v
	}
	return func(id string) (int, bool) {
		v, ok := place[id]
		return v, ok
	}
}
