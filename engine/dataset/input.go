package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// maxVertices is what int32 indices can name.
const maxVertices = math.MaxInt32

// input is a source on its way to a reader.
type input struct {
	fsys fs.FS
	path string // in fsys: the file, or "." or a folder
	src  string // as the user wrote it
	dir  bool
	opt  Options

	keys  map[string]bool // member names of a .npz file, read once by detection
	files []string        // of the folder, listed once; nil: not yet
}

// newInput finds src. Its error says whether the path is missing or unreadable.
func newInput(src string, opt Options) (*input, error) {
	in := &input{src: src, opt: opt}
	if opt.FS != nil {
		in.fsys, in.path = opt.FS, path.Clean(src)
	} else if st, err := os.Stat(src); err == nil && st.IsDir() {
		in.fsys, in.path = os.DirFS(src), "."
	} else {
		in.fsys, in.path = os.DirFS(filepath.Dir(src)), filepath.Base(src)
	}
	st, err := fs.Stat(in.fsys, in.path)
	if err != nil {
		return nil, fmt.Errorf("open data set %s: %w%s%s", src, cause(err), suggest(src, []string{"cora"}), remedyFor(err))
	}
	in.dir = st.IsDir()
	if in.dir {
		if _, err := fs.ReadDir(in.fsys, in.path); err != nil {
			return nil, fmt.Errorf("open data set %s: list the folder: %w%s", src, cause(err), remedyFor(err))
		}
	}
	return in, nil
}

// cause is err without the path and the operation that fs put around it.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// remedyFor is a half-sentence that says what to do about a file that cannot be opened.
func remedyFor(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; check the path, or use the built-in data set cora"
	case errors.Is(err, fs.ErrPermission):
		return "; give this user the right to read it"
	}
	return ""
}

// base is the source's name without folders and without extensions.
func (in *input) base() string {
	name := filepath.Base(filepath.Clean(in.src))
	if in.dir {
		return name
	}
	for _, ext := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, ext)
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	return name
}

// ext is the file's extension in lower case, without a compression suffix.
func (in *input) ext() string { return extOf(in.path) }

func extOf(name string) string {
	name = strings.ToLower(name)
	for _, z := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, z)
	}
	return path.Ext(name)
}

// list is the names in the source's folder, sorted; nil where it is a file.
func (in *input) list() []string {
	if !in.dir || in.files != nil {
		return in.files
	}
	entries, err := fs.ReadDir(in.fsys, in.path)
	if err != nil {
		return nil
	}
	in.files = []string{}
	for _, e := range entries {
		if !e.IsDir() {
			in.files = append(in.files, e.Name())
		}
	}
	sort.Strings(in.files)
	return in.files
}

// blob is an open file with the name that messages use.
type blob struct {
	fs.File
	name string
	size int64
}

// open opens name inside the source's folder.
func (in *input) open(name string) (*blob, error) {
	return in.watch(openBlob(in.fsys, path.Join(in.path, name), name))
}

// openSelf opens the source itself, a file.
func (in *input) openSelf() (*blob, error) {
	return in.watch(openBlob(in.fsys, in.path, path.Base(in.path)))
}

// openRef opens a file that the user named by its own path.
func (in *input) openRef(name string) (*blob, error) { return in.watch(openUser(in.opt.FS, name)) }

func openUser(fsys fs.FS, name string) (*blob, error) {
	if fsys != nil {
		return openBlob(fsys, path.Clean(name), name)
	}
	return openBlob(os.DirFS(filepath.Dir(name)), filepath.Base(name), name)
}

func openBlob(fsys fs.FS, where, name string) (*blob, error) {
	f, err := fsys.Open(where)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w%s", name, cause(err), fileRemedy(err))
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	if st.IsDir() {
		f.Close()
		return nil, fmt.Errorf("read %s: it is a folder; name a file", name)
	}
	return &blob{File: f, name: name, size: st.Size()}, nil
}

func fileRemedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; the data set is incomplete without it"
	case errors.Is(err, fs.ErrPermission):
		return "; give this user the right to read it"
	}
	return ""
}

// bytes is the whole file, which must be no longer than limit.
func (b *blob) bytes(limit int64) ([]byte, error) {
	if b.size > limit {
		return nil, fmt.Errorf("read %s: %d bytes are more than the %d that such a file may have", b.name, b.size, limit)
	}
	var buf bytes.Buffer
	buf.Grow(int(max(b.size, 0)) + bytes.MinRead)
	if _, err := buf.ReadFrom(io.LimitReader(b.File, limit+1)); err != nil {
		return nil, fmt.Errorf("read %s: byte %d: %w", b.name, buf.Len(), cause(err))
	}
	return buf.Bytes(), nil
}

// readerAt is the file for random access: itself where it can, else a copy in memory.
func (b *blob) readerAt() (io.ReaderAt, int64, error) {
	if r, ok := b.File.(io.ReaderAt); ok {
		return r, b.size, nil
	}
	data, err := b.bytes(maxFile)
	if err != nil {
		return nil, 0, err
	}
	return bytes.NewReader(data), int64(len(data)), nil
}

// maxFile is the longest file that is read into memory as it is.
const maxFile = 1 << 36

// maxExpanded is how many bytes a compressed file of the given size may expand
// to. deflate cannot exceed 1032:1; beyond 1 GiB, real data stays far below 256:1.
func maxExpanded(compressed int64) int64 {
	if compressed >= maxFile {
		return math.MaxInt64
	}
	return min(1032*compressed+1<<16, max(1<<30, 256*compressed))
}
