package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"dorylus/engine/dataset"
	"dorylus/kernels"
)

// OpenOptions says how a store is opened.
type OpenOptions struct {
	// Verify compares the checksum of every file, and symmetry, which reads all
	// of the store. Sizes, shapes, offsets and vertex numbers are always checked.
	Verify bool
	// Read reads the files into memory instead of mapping them: on huge pages
	// where the system has them, so that gathers miss fewer translations, at the
	// price of reading everything before the first epoch.
	Read bool
}

// maxMeta bounds meta.json, which class names and findings may make long.
const maxMeta = 64 << 20

// Open opens the store in dir. The caller closes it.
func Open(dir string, opt OpenOptions) (*Store, error) {
	s, err := open(dir, opt)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

func open(dir string, opt OpenOptions) (*Store, error) {
	if !littleEndian() {
		return nil, fmt.Errorf("this machine is big-endian, stores are little-endian")
	}
	r := &reader{dir: dir, opt: opt}
	s, err := r.read()
	if err != nil {
		return nil, errors.Join(err, r.unmap())
	}
	s.unmap = r.unmap
	return s, nil
}

// reader opens the files of one store.
type reader struct {
	dir  string
	opt  OpenOptions
	meta Meta
	maps [][]byte
	// part, if not nil, is what the store is opened for: rows are checked when they
	// are taken, and files noted there.
	part *Part
}

func (r *reader) unmap() error {
	var errs []error
	for _, m := range r.maps {
		errs = append(errs, unmapFile(m))
	}
	r.maps = nil
	return errors.Join(errs...)
}

func (r *reader) read() (*Store, error) {
	if err := r.readMeta(); err != nil {
		return nil, err
	}
	s := &Store{Dir: r.dir, Meta: r.meta}
	m := &s.Meta
	var err error
	if s.Order, err = load[int32](r, orderFile, m.Vertices); err != nil {
		return nil, err
	}
	if r.part == nil {
		if s.Rank, err = invert(s.Order); err != nil {
			return nil, fmt.Errorf("%s: %w", orderFile, err)
		}
	}
	if s.In, err = r.graph(inPtrFile, inColFile, inValFile); err != nil {
		return nil, err
	}
	s.Out = s.In
	if !m.Symmetric {
		if s.Out, err = r.graph(outPtrFile, outColFile, outValFile); err != nil {
			return nil, err
		}
	} else if r.opt.Verify && r.part == nil && !sameAsTranspose(s.In) {
		return nil, fmt.Errorf("%s: the edges are not symmetric, but %s says so: prepare the data again", inColFile, MetaFile)
	}
	if err := r.features(s); err != nil {
		return nil, err
	}
	if err := r.labels(s); err != nil {
		return nil, err
	}
	if err := r.splits(s); err != nil {
		return nil, err
	}
	if err := r.ids(s); err != nil {
		return nil, err
	}
	return s, nil
}

// readMeta reads meta.json and checks what the sizes of all arrays follow from.
func (r *reader) readMeta() error {
	path := filepath.Join(r.dir, MetaFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it has no %s, so it is no store: make one with prepare", MetaFile)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMeta+1))
	if err != nil {
		return err
	}
	if len(text) > maxMeta {
		return fmt.Errorf("%s has more than %d bytes", MetaFile, maxMeta)
	}
	// The version comes first: a newer one may have other types elsewhere.
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("%s: %w", MetaFile, err)
	}
	if v.Version > Version {
		return fmt.Errorf("its format is version %d, this program knows versions up to %d: use a newer program, or prepare the data again with this one", v.Version, Version)
	}
	if v.Version < 1 {
		return fmt.Errorf("%s: version %d, want 1 to %d", MetaFile, v.Version, Version)
	}
	if err := json.Unmarshal(text, &r.meta); err != nil {
		return fmt.Errorf("%s: %w", MetaFile, err)
	}
	return r.meta.validate()
}

// validate refuses numbers that no store can have.
func (m *Meta) validate() error {
	bad := func(what string, value any) error {
		return fmt.Errorf("%s: %s is %v: prepare the data again", MetaFile, what, value)
	}
	switch {
	case m.Vertices < 0 || m.Vertices > math.MaxInt32:
		return bad("vertices", m.Vertices)
	case m.Edges < 0:
		return bad("edges", m.Edges)
	case m.Features < 0 || m.Features > math.MaxInt32:
		return bad("features", m.Features)
	case m.Classes < 0 || m.Classes > math.MaxInt32:
		return bad("classes", m.Classes)
	case m.BlockRows < 1 || m.BlockRows > math.MaxInt32:
		return bad("block_rows", m.BlockRows)
	case m.FeatureKind != NoFeatures && m.FeatureKind != DenseFeatures && m.FeatureKind != CSRFeatures:
		return bad("feature_kind", fmt.Sprintf("%q", m.FeatureKind))
	case m.FeatureKind == NoFeatures && m.Features != 0:
		return bad("features", fmt.Sprintf("%d, but feature_kind is none", m.Features))
	case len(m.ClassNames) > 0 && len(m.ClassNames) != m.Classes:
		return bad("the number of class names", fmt.Sprintf("%d for %d classes", len(m.ClassNames), m.Classes))
	}
	return nil
}

// load maps one array. shape has the sizes that meta.json implies; -1 accepts any.
func load[T element](r *reader, name string, shape ...int) ([]T, error) {
	data, err := r.array(name, dtype[T](), shape)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return sliceOf[T](data), nil
}

// array maps a file and returns its data, after checking that the file, its
// header and meta.json agree.
func (r *reader) array(name, dtype string, want []int) ([]byte, error) {
	entry, ok := r.meta.Files[name]
	if !ok {
		return nil, fmt.Errorf("%s does not list it: prepare the data again", MetaFile)
	}
	if entry.DType != dtype {
		return nil, fmt.Errorf("%s says its type is %q, want %q", MetaFile, entry.DType, dtype)
	}
	if !fits(entry.Shape, want) {
		return nil, fmt.Errorf("%s says its shape is %v, want %v", MetaFile, entry.Shape, want)
	}
	n, ok := size(entry.Shape)
	if !ok {
		return nil, fmt.Errorf("%s says its shape is %v", MetaFile, entry.Shape)
	}
	n *= width(dtype)
	file, isMap, err := r.contents(name, n)
	if err != nil {
		return nil, err
	}
	gotType, gotShape, start, err := parseNpy(file)
	if err != nil {
		return nil, err
	}
	if gotType != dtype || !slices.Equal(gotShape, entry.Shape) {
		return nil, fmt.Errorf("it holds %s of shape %v, %s says %s of shape %v: files of two stores are mixed", gotType, gotShape, MetaFile, dtype, entry.Shape)
	}
	if len(file)-start != n {
		return nil, fmt.Errorf("the file has %d bytes, its header and shape %v want %d: copy or prepare it again", len(file), gotShape, start+n)
	}
	if r.opt.Verify {
		got, err := r.checksum(name, file)
		if err != nil {
			return nil, err
		}
		if got != entry.SHA256 {
			return nil, fmt.Errorf("its SHA-256 is %s, %s says %s: copy or prepare it again", got, MetaFile, entry.SHA256)
		}
	}
	if r.part != nil {
		r.part.note(name, file, start, isMap)
	}
	return file[start:], nil
}

// checksum is the SHA-256 of a file. For a part it is read from the file, so that the
// mapping stays untouched.
func (r *reader) checksum(name string, file []byte) (string, error) {
	h := sha256.New()
	if r.part == nil {
		h.Write(file)
	} else {
		f, err := os.Open(filepath.Join(r.dir, name))
		if err != nil {
			return "", err
		}
		defer f.Close()
		if _, err := io.Copy(h, f); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fits compares a shape with the one wanted, where -1 stands for any size.
func fits(shape, want []int) bool {
	if len(shape) != len(want) {
		return false
	}
	for i, n := range shape {
		if n < 0 || want[i] >= 0 && n != want[i] {
			return false
		}
	}
	return true
}

// contents is a file with size bytes of data as bytes: mapped, or read where that
// is asked for or mapping is not possible.
func (r *reader) contents(name string, size int) (data []byte, isMap bool, err error) {
	f, err := os.Open(filepath.Join(r.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("the file is missing: copy or prepare the store again")
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("it is not a regular file")
	}
	if n := info.Size(); n < int64(size) || n > int64(size)+npyMaxHeader+12 {
		return nil, false, fmt.Errorf("the file has %d bytes, %s wants a header and %d: copy or prepare it again", n, MetaFile, size)
	}
	if !r.opt.Read {
		if data, err := mapFile(f, info.Size()); err == nil {
			r.maps = append(r.maps, data)
			if r.part != nil {
				adviseRandom(data)
			}
			return data, true, nil
		}
	}
	data, err = allocate(info.Size())
	if err == nil {
		r.maps = append(r.maps, data)
	} else {
		data = alignedBytes(info.Size())
	}
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, false, err
	}
	return data, false, nil
}

// alignedBytes is memory whose start is on a 64-byte boundary, as a mapping's is.
func alignedBytes(n int64) []byte {
	words := make([]int64, n/8+npyAlign/8+1)
	raw := bytesOf(words)
	shift := 0
	for shift < npyAlign && address(raw[shift:])%npyAlign != 0 {
		shift += 8
	}
	return raw[shift : int64(shift)+n : int64(shift)+n]
}

// graph maps a CSR and checks everything that code without bounds checks relies
// on.
func (r *reader) graph(ptr, col, val string) (*kernels.CSR, error) {
	m := &r.meta
	g, err := r.csr(ptr, col, m.Vertices, m.Vertices, m.Edges)
	if err != nil {
		return nil, err
	}
	if m.Weighted {
		if g.Val, err = load[float32](r, val, len(g.Col)); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// csr maps offsets and columns of a matrix and checks them. entries < 0 accepts
// any number.
func (r *reader) csr(ptr, col string, rows, cols int, entries int64) (*kernels.CSR, error) {
	g := &kernels.CSR{Cols: cols}
	var err error
	if g.RowPtr, err = load[int64](r, ptr, rows+1); err != nil {
		return nil, err
	}
	if g.Col, err = load[int32](r, col, int(max(entries, -1))); err != nil {
		return nil, err
	}
	if g.RowPtr[0] != 0 {
		return nil, fmt.Errorf("%s: row 0 starts at %d, want 0", ptr, g.RowPtr[0])
	}
	if last := g.RowPtr[rows]; last != int64(len(g.Col)) {
		return nil, fmt.Errorf("%s: the last row ends at %d, but %s has %d entries", ptr, last, col, len(g.Col))
	}
	if r.part != nil {
		return g, nil // checked by rows
	}
	if err := checkOffsets(g, ptr, kernels.Span{Hi: rows}); err != nil {
		return nil, err
	}
	return g, checkColumns(g, col, kernels.Span{Hi: rows})
}

// checkOffsets checks that the offsets of some rows do not fall or leave the entries.
func checkOffsets(g *kernels.CSR, ptr string, rows kernels.Span) error {
	if lo, hi := g.RowPtr[rows.Lo], g.RowPtr[rows.Hi]; lo < 0 || hi > int64(len(g.Col)) {
		return fmt.Errorf("%s: rows %d to %d are entries %d to %d of %d", ptr, rows.Lo, rows.Hi, lo, hi, len(g.Col))
	}
	for v := rows.Lo; v < rows.Hi; v++ {
		if g.RowPtr[v] > g.RowPtr[v+1] {
			return fmt.Errorf("%s: row %d starts at %d, before row %d at %d", ptr, v+1, g.RowPtr[v+1], v, g.RowPtr[v])
		}
	}
	return nil
}

// checkColumns checks that the columns of some rows, whose offsets are good, ascend
// inside their range.
func checkColumns(g *kernels.CSR, col string, rows kernels.Span) error {
	return g.Spread(rows, func(s kernels.Span) error {
		for v := s.Lo; v < s.Hi; v++ {
			if row := g.Col[g.RowPtr[v]:g.RowPtr[v+1]]; !ascends(row, g.Cols) {
				return badRow(row, col, v, g.Cols)
			}
		}
		return nil
	})
}

// ascends says that columns strictly ascend in 0..cols-1: then the first and the last
// are the only ones to compare with the range.
func ascends(row []int32, cols int) bool {
	if len(row) == 0 {
		return true
	}
	good := row[0] >= 0 && int(row[len(row)-1]) < cols
	for i, u := range row[1:] {
		good = good && row[i] < u
	}
	return good
}

// badRow names the first column that ascends does not accept, if there is one.
func badRow(row []int32, col string, v, cols int) error {
	before := int32(-1)
	for _, u := range row {
		if u <= before || int(u) >= cols {
			return fmt.Errorf("%s: row %d has column %d after %d, want ascending ones in 0..%d", col, v, u, before, cols-1)
		}
		before = u
	}
	return nil
}

func (r *reader) features(s *Store) error {
	m := &r.meta
	switch m.FeatureKind {
	case DenseFeatures:
		stride := paddedStride(m.Features)
		host, err := load[float32](r, denseFile, m.Vertices, stride)
		if err != nil {
			return err
		}
		s.Dense = &kernels.Mat{Rows: m.Vertices, Cols: m.Features, Stride: stride, Host: host}
	case CSRFeatures:
		g, err := r.csr(featPtrFile, featColFile, m.Vertices, m.Features, -1)
		if err != nil {
			return err
		}
		if _, ok := m.Files[featValFile]; ok {
			if g.Val, err = load[float32](r, featValFile, len(g.Col)); err != nil {
				return err
			}
		}
		s.Sparse = g
	}
	return nil
}

func (r *reader) labels(s *Store) (err error) {
	if _, ok := r.meta.Files[labelsFile]; !ok {
		return nil
	}
	if s.Labels, err = load[int32](r, labelsFile, r.meta.Vertices); err != nil {
		return err
	}
	if r.meta.MultiLabel {
		if err := r.multi(s); err != nil {
			return err
		}
	}
	if r.part != nil {
		return nil // checked by rows
	}
	return checkLabels(s, kernels.Span{Hi: r.meta.Vertices})
}

func checkLabels(s *Store, rows kernels.Span) error {
	for v := rows.Lo; v < rows.Hi; v++ {
		if c := s.Labels[v]; c < -1 || int(c) >= s.Meta.Classes {
			return fmt.Errorf("%s: row %d has label %d, want -1..%d", labelsFile, v, c, s.Meta.Classes-1)
		}
	}
	return nil
}

// multi reads the classes of multi-label data.
func (r *reader) multi(s *Store) error {
	g := &kernels.CSR{Cols: r.meta.Classes}
	var err error
	if g.RowPtr, err = load[int64](r, multiPtrFile, r.meta.Vertices+1); err != nil {
		return err
	}
	if g.Col, err = load[int32](r, multiColFile, -1); err != nil {
		return err
	}
	if r.part == nil {
		if err := g.Validate(); err != nil {
			return fmt.Errorf("%s: %w", multiColFile, err)
		}
	}
	s.Multi = g
	return nil
}

func (r *reader) splits(s *Store) error {
	m := &r.meta
	if len(m.SplitNames) == 0 {
		return nil
	}
	n := m.Vertices
	all, err := load[uint8](r, splitsFile, len(m.SplitNames), n)
	if err != nil {
		return err
	}
	for i, name := range m.SplitNames {
		sp := dataset.Split{Name: name, Train: []int32{}, Val: []int32{}, Test: []int32{}}
		for v, role := range all[i*n : (i+1)*n] {
			switch role {
			case roleNone:
			case roleTrain:
				sp.Train = append(sp.Train, int32(v))
			case roleVal:
				sp.Val = append(sp.Val, int32(v))
			case roleTest:
				sp.Test = append(sp.Test, int32(v))
			default:
				return fmt.Errorf("%s: split %d gives row %d role %d, want 0..3", splitsFile, i, v, role)
			}
		}
		s.Splits = append(s.Splits, sp)
	}
	return nil
}

func (r *reader) ids(s *Store) error {
	if _, ok := r.meta.Files[idsStartFile]; !ok {
		return nil
	}
	start, err := load[int64](r, idsStartFile, r.meta.Vertices+1)
	if err != nil {
		return err
	}
	blob, err := load[uint8](r, idsFile, -1)
	if err != nil {
		return err
	}
	if start[0] != 0 || start[len(start)-1] != int64(len(blob)) {
		return fmt.Errorf("%s: offsets run from %d to %d over %d bytes", idsStartFile, start[0], start[len(start)-1], len(blob))
	}
	if r.part != nil {
		r.part.nameStart, r.part.nameText = start, blob
		return nil // read by Names
	}
	for v := range r.meta.Vertices {
		if start[v] > start[v+1] || start[v+1] > int64(len(blob)) {
			return fmt.Errorf("%s: the name of vertex %d runs from %d to %d", idsStartFile, v, start[v], start[v+1])
		}
	}
	text := string(blob) // a copy, shared by all names
	s.IDs = make([]string, r.meta.Vertices)
	for v := range s.IDs {
		s.IDs[v] = text[start[v]:start[v+1]]
	}
	return nil
}
