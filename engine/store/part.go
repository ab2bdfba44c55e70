package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"dorylus/kernels"
)

// Part is a store on a machine that uses some of its rows: what a graph server of a
// cluster holds. It costs memory for these rows, apart from the splits (4 bytes for
// each vertex with a role).
//
// All files are mapped whole, so that every row and edge has the number that it has in
// the whole store and code that walks over a *Store need not know about parts; but a
// mapping takes address space only, and pages of it come into memory when they are
// touched. What Open does to every row (check it, invert the order, make strings of the
// names) is therefore left out, and done for the rows taken only:
//
//   - Take checks rows as Open does and lets go of what has been touched outside them.
//   - Rows that were not taken are unchecked and lie in pages not yet read: a few of
//     them are better had from the Read methods, which read from the files, check what
//     they read, and leave the mapping alone.
//   - The offsets of all rows are checked, so that the length of any row is good.
//   - Rank and IDs are nil. Names has the names.
//
// Windows that hold only the rows, the obvious design, would keep the machine from
// touching more by mistake, but every offset into them would have to be shifted, or
// every array have a second length; and pages of a mapped file that are in memory by
// mistake are the first that the system takes back.
//
// Files that cannot be mapped are read into memory, whole.
type Part struct {
	*Store
	Rows kernels.Span // those taken

	arrays    map[string]mapped   // what is mapped
	starts    map[string]int64    // where the data of each file begins
	files     map[string]*os.File // those that the methods which read have opened
	nameStart []int64
	nameText  []uint8
}

// mapped is a mapped file, whose data begins at start.
type mapped struct {
	file  []byte
	start int
}

// OpenPart opens the store in dir for some of its rows: those given, or none yet,
// which is enough to cut the store into partitions; the caller takes rows then. Verify
// compares checksums, which reads all files once, but not symmetry; Read is refused.
// The caller closes the part or the Store in it, which is the same.
func OpenPart(dir string, opt OpenOptions, rows kernels.Span) (*Part, error) {
	p, err := openPart(dir, opt, rows)
	if err != nil {
		return nil, fmt.Errorf("open rows [%d,%d) of store %s: %w", rows.Lo, rows.Hi, dir, err)
	}
	return p, nil
}

func openPart(dir string, opt OpenOptions, rows kernels.Span) (*Part, error) {
	if !littleEndian() {
		return nil, fmt.Errorf("this machine is big-endian, stores are little-endian")
	}
	if opt.Read {
		return nil, fmt.Errorf("part of a store is always mapped: leave Read out")
	}
	p := &Part{arrays: map[string]mapped{}, starts: map[string]int64{}, files: map[string]*os.File{}}
	r := &reader{dir: dir, opt: opt, part: p}
	s, err := r.read()
	if err != nil {
		return nil, errors.Join(err, r.unmap())
	}
	s.unmap = func() error { return errors.Join(r.unmap(), p.closeFiles()) }
	p.Store = s
	s.part = p
	if err := p.Take(rows); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// note keeps where the data of a file is; isMap says that file is a mapping.
func (p *Part) note(name string, file []byte, start int, isMap bool) {
	p.starts[name] = int64(start)
	if isMap {
		p.arrays[name] = mapped{file, start}
	}
}

// Take makes rows those that the part is for: it checks them, and lets go of memory for
// any others. An error says which file and row is wrong.
func (p *Part) Take(rows kernels.Span) error {
	if n := p.Meta.Vertices; rows.Lo < 0 || rows.Hi < rows.Lo || rows.Hi > n {
		return fmt.Errorf("take rows [%d,%d) of a store of %d", rows.Lo, rows.Hi, n)
	}
	p.Rows = rows
	for name, m := range p.arrays {
		lo, hi := p.window(name, rows)
		adviseNormal(m.file, lo, hi)
	}
	if err := p.check(rows); err != nil {
		return err
	}
	p.Trim()
	return nil
}

// Trim lets go of the memory for everything outside the rows taken, which has come in
// by reading it, for example to cut the store into partitions. It can be read again.
func (p *Part) Trim() {
	for name, m := range p.arrays {
		lo, hi := p.window(name, p.Rows)
		dropPages(m.file, 0, lo)
		dropPages(m.file, hi, len(m.file))
	}
}

// Forget lets go of the memory for all that has been read. It can be read again.
func (p *Part) Forget() {
	for _, m := range p.arrays {
		dropPages(m.file, 0, len(m.file))
	}
}

// check does to some rows what Open does to all.
func (p *Part) check(rows kernels.Span) error {
	for v := rows.Lo; v < rows.Hi; v++ {
		if u := p.Order[v]; u < 0 || int(u) >= p.Meta.Vertices {
			return fmt.Errorf("%s: row %d is vertex %d, want 0..%d", orderFile, v, u, p.Meta.Vertices-1)
		}
	}
	if rows.Len() == 0 {
		return nil
	}
	for _, g := range p.matrices() {
		if err := checkOffsets(g.csr, g.ptr, kernels.Span{Hi: g.csr.Rows()}); err != nil {
			return err
		}
		if g.csr == p.Multi {
			continue
		}
		if err := checkColumns(g.csr, g.col, rows); err != nil {
			return err
		}
	}
	if p.Labels == nil {
		return nil
	}
	if p.Multi != nil {
		lo := p.Multi.RowPtr[rows.Lo]
		own := &kernels.CSR{Cols: p.Multi.Cols, Col: p.Multi.Col[lo:p.Multi.RowPtr[rows.Hi]]}
		for v := rows.Lo; v <= rows.Hi; v++ {
			own.RowPtr = append(own.RowPtr, p.Multi.RowPtr[v]-lo)
		}
		if err := own.Validate(); err != nil {
			return fmt.Errorf("%s from row %d on: %w", multiColFile, rows.Lo, err)
		}
	}
	return checkLabels(p.Store, rows)
}

// matrix is a CSR of the store and its files; val is "" where it has no values.
type matrix struct {
	csr           *kernels.CSR
	ptr, col, val string
}

func (p *Part) matrices() []matrix {
	list := []matrix{{p.In, inPtrFile, inColFile, inValFile}}
	if p.Out != p.In {
		list = append(list, matrix{p.Out, outPtrFile, outColFile, outValFile})
	}
	if p.Sparse != nil {
		list = append(list, matrix{p.Sparse, featPtrFile, featColFile, featValFile})
	}
	if p.Multi != nil {
		list = append(list, matrix{p.Multi, multiPtrFile, multiColFile, ""})
	}
	for i := range list {
		if list[i].csr.Val == nil {
			list[i].val = ""
		}
	}
	return list
}

// window is the part of a file, as offsets, that rows are in.
func (p *Part) window(name string, rows kernels.Span) (lo, hi int) {
	m := p.arrays[name]
	cut := func(width, a, b int) (int, int) {
		return m.start + width*a, m.start + width*b
	}
	for _, g := range p.matrices() {
		switch name {
		case g.ptr:
			return cut(8, rows.Lo, rows.Hi+1)
		case g.col, g.val:
			end := int64(len(g.csr.Col)) // offsets may not have been checked
			a := min(max(g.csr.RowPtr[rows.Lo], 0), end)
			b := min(max(g.csr.RowPtr[rows.Hi], a), end)
			return cut(4, int(a), int(b))
		}
	}
	switch name {
	case orderFile, labelsFile:
		return cut(4, rows.Lo, rows.Hi)
	case denseFile:
		return cut(4*p.Dense.Stride, rows.Lo, rows.Hi)
	}
	return m.start, m.start // splits and names: read once
}

// Close releases the memory maps and files. No slice of the store may be used after it.
func (p *Part) Close() error { return p.Store.Close() }

// closeFiles closes what the methods that read have opened.
func (p *Part) closeFiles() error {
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	clear(p.files)
	return errors.Join(errs...)
}

// open is the file of an array, open for reading.
func (p *Part) open(name string) (*os.File, error) {
	if f, ok := p.files[name]; ok {
		return f, nil
	}
	f, err := os.Open(filepath.Join(p.Dir, name))
	if err != nil {
		return nil, err
	}
	p.files[name] = f
	return f, nil
}
