package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// WriteOptions says how a store is written.
type WriteOptions struct {
	// Overwrite replaces a store that is there already. What is there and is not
	// a store is never replaced.
	Overwrite bool
	// Progress, if not nil, is told the bytes written so far.
	Progress func(file string, done, total int64)

	// wrap, set by tests, stands between Write and each file.
	wrap func(name string, w io.Writer) io.Writer
}

// ErrExists says that there is something where a store was to be written.
var ErrExists = errors.New("exists already")

// Write writes s as the folder dir, whose parent must exist, and fills in
// s.Meta.Files. It writes into a temporary folder beside dir, which becomes dir
// only when every byte is on disk: dir is either whole or untouched, whatever
// happens. What a killed Write leaves behind is removed by the next one.
func Write(ctx context.Context, dir string, s *Store, opt WriteOptions) error {
	if err := write(ctx, filepath.Clean(dir), s, opt); err != nil {
		return fmt.Errorf("write store %s: %w", dir, err)
	}
	return nil
}

func write(ctx context.Context, dir string, s *Store, opt WriteOptions) (err error) {
	if !littleEndian() {
		return fmt.Errorf("this machine is big-endian, stores are little-endian: prepare on another one")
	}
	arrays, err := s.arrays()
	if err != nil {
		return err
	}
	if err := replaceable(dir, opt.Overwrite); err != nil {
		return err
	}
	parent, base := filepath.Split(dir)
	if parent == "" {
		parent = "."
	}
	prefix := "." + base + ".tmp-"
	removeStale(parent, prefix)
	tmp, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return err
	}
	unlock := lock(tmp)
	defer unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}

	meta := s.Meta
	meta.Files = map[string]FileMeta{}
	p := progress{report: opt.Progress}
	for i := range arrays {
		p.total += arrays[i].bytes()
	}
	for i := range arrays {
		a := &arrays[i]
		p.file = a.name
		sum, err := writeArray(ctx, filepath.Join(tmp, a.name), a, opt.wrap, &p)
		if err != nil {
			return fmt.Errorf("%s (of %d MiB in all): %w", a.name, p.total>>20+1, err)
		}
		meta.Files[a.name] = FileMeta{SHA256: sum, DType: a.dtype, Shape: a.shape}
	}
	if err := writeMeta(filepath.Join(tmp, MetaFile), &meta, opt.wrap); err != nil {
		return fmt.Errorf("%s: %w", MetaFile, err)
	}
	if err := syncDir(tmp); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := publish(tmp, dir, opt.Overwrite); err != nil {
		return err
	}
	s.Meta.Files = meta.Files
	return syncDir(parent)
}

// Free says whether Write could make dir, as far as names go, so that nobody computes a
// store that has no place. Its errors are those of Write.
func Free(dir string, overwrite bool) error {
	dir = filepath.Clean(dir)
	err := replaceable(dir, overwrite)
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(filepath.Dir(dir)); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder: choose another place", filepath.Dir(dir))
		}
	}
	if err != nil {
		return fmt.Errorf("write store %s: %w", dir, err)
	}
	return nil
}

// replaceable says whether dir may become a store: it is not there, or empty, or
// a store that may be overwritten.
func replaceable(dir string, overwrite bool) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("a file of that name %w: choose another name", ErrExists)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, MetaFile)); err != nil {
		return fmt.Errorf("a folder with other files (%s) %w: choose another name", entries[0].Name(), ErrExists)
	}
	if !overwrite {
		return fmt.Errorf("a store of that name %w: choose another name, or overwrite it", ErrExists)
	}
	return nil
}

// writeArray writes and syncs one array and returns the checksum of the file.
func writeArray(ctx context.Context, path string, a *array, wrap func(string, io.Writer) io.Writer, p *progress) (sum string, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	var w io.Writer = f
	if wrap != nil {
		w = wrap(a.name, w)
	}
	hash := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(w, hash), 1<<20)
	if _, err := out.Write(npyHeader(a.dtype, a.shape)); err != nil {
		return "", err
	}
	for piece := range a.pieces {
		for len(piece) > 0 {
			if p.due() {
				if err := ctx.Err(); err != nil {
					return "", err
				}
			}
			n := min(len(piece), 4<<20)
			if _, err := out.Write(piece[:n]); err != nil {
				return "", err
			}
			piece = piece[n:]
			p.add(n)
		}
	}
	if err := out.Flush(); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// writeMeta writes and syncs meta.json, the last file of a store.
func writeMeta(path string, meta *Meta, wrap func(string, io.Writer) io.Writer) (err error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(meta); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	var w io.Writer = f
	if wrap != nil {
		w = wrap(MetaFile, w)
	}
	if _, err := w.Write(text.Bytes()); err != nil {
		return err
	}
	return f.Sync()
}

// publish makes tmp the folder dir. Where a store is replaced, the two change
// places in one step if the system can do that; otherwise dir is missing for a
// moment, never half there.
func publish(tmp, dir string, overwrite bool) error {
	err := os.Rename(tmp, dir) // replaces an empty folder
	if err == nil {
		return nil
	}
	if err := replaceable(dir, overwrite); err != nil {
		return err
	}
	if exchange(tmp, dir) == nil {
		return os.RemoveAll(tmp)
	}
	old := tmp + "-old"
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// removeStale removes what writers that were killed left in parent: temporary
// folders that no process holds a lock on.
func removeStale(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // creating the folder will say why
	}
	for _, e := range entries {
		if path := filepath.Join(parent, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), prefix) && abandoned(path) {
			os.RemoveAll(path) // a leftover that cannot be removed does no harm
		}
	}
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// progress counts the bytes of all files and reports every few MiB.
type progress struct {
	report      func(file string, done, total int64)
	file        string
	done, total int64
	told, asked int64
}

const progressStep = 4 << 20

func (p *progress) add(n int) {
	p.done += int64(n)
	if p.report != nil && (p.done-p.told >= progressStep || p.done == p.total) {
		p.told = p.done
		p.report(p.file, p.done, p.total)
	}
}

// due says that it is time to look whether the work was cancelled: at the start
// of a file and every few MiB.
func (p *progress) due() bool {
	if p.asked > 0 && p.done-p.asked < progressStep {
		return false
	}
	p.asked = max(p.done, 1)
	return true
}
