package ckpt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Save writes c to a folder of its own in dir and is that folder and its size. It
// first makes the whole checkpoint under another name and only then gives it its
// own; only after that are older ones removed, but for the newest keep, at least
// one. So whenever it fails or is killed, what was there before is still there.
//
// One process at a time may save to dir.
func Save(dir string, c *Checkpoint, keep int) (path string, bytes int64, err error) {
	return save(osDisk{}, dir, c, keep)
}

const tempPrefix = ".tmp-"

func save(d disk, dir string, c *Checkpoint, keep int) (string, int64, error) {
	fail := func(err error) (string, int64, error) {
		return "", 0, fmt.Errorf("save checkpoint of epoch %d in %s: %w", c.Epoch, dir, err)
	}
	files, size, err := encodeAll(c)
	if err != nil {
		return fail(err)
	}
	if err := d.mkdir(dir); err != nil {
		return fail(short(err))
	}
	name := fmt.Sprintf("epoch-%06d", c.Epoch)
	temp := filepath.Join(dir, tempPrefix+name)
	if err := writeAll(d, temp, files); err != nil {
		_ = d.remove(temp) // where it cannot be removed now, the next Save does it
		return fail(err)
	}
	path := filepath.Join(dir, name)
	if err := putInPlace(d, temp, path); err != nil {
		return fail(short(err))
	}
	if err := d.syncDir(dir); err != nil {
		return fail(short(err))
	}
	if err := prune(d, dir, name, max(keep, 1)); err != nil {
		return path, size, fmt.Errorf("checkpoint of epoch %d is complete, but older ones in %s stay: %w", c.Epoch, dir, short(err))
	}
	return path, size, nil
}

// content is one file of a checkpoint.
type content struct {
	name string
	data []byte
}

// encodeAll is the files of c, the manifest last, and their size.
func encodeAll(c *Checkpoint) (files []content, size int64, err error) {
	sets := []struct {
		name    string
		tensors []Named
	}{{weightsFile, c.Weights}, {momentsFile, c.Moments}}
	if c.Best != nil {
		sets = append(sets, struct {
			name    string
			tensors []Named
		}{bestFile, c.BestWeights})
	}
	infos := map[string]fileInfo{}
	for _, set := range sets {
		data, err := encode(set.tensors, c.Epoch)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", set.name, err)
		}
		sum := sha256.Sum256(data)
		infos[set.name] = fileInfo{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
		files = append(files, content{set.name, data})
		size += int64(len(data))
	}
	data, err := encodeManifest(c, infos)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", manifestFile, err)
	}
	return append(files, content{manifestFile, data}), size + int64(len(data)), nil
}

// writeAll makes the folder anew and writes its files through to the disk.
func writeAll(d disk, dir string, files []content) error {
	if err := d.remove(dir); err != nil {
		return short(err)
	}
	if err := d.mkdir(dir); err != nil {
		return short(err)
	}
	for _, f := range files {
		if err := writeFile(d, filepath.Join(dir, f.name), f.data); err != nil {
			return fmt.Errorf("write %s: %w", f.name, short(err))
		}
	}
	return short(d.syncDir(dir))
}

func writeFile(d disk, path string, data []byte) error {
	f, err := d.create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// putInPlace gives a complete folder its name. A checkpoint that has the name
// already is set aside first, under a name that Latest knows, and removed when its
// successor is there.
func putInPlace(d disk, temp, path string) error {
	old := path + ".old"
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return d.rename(temp, path)
	}
	if err := d.remove(old); err != nil {
		return err
	}
	if err := d.rename(path, old); err != nil {
		return err
	}
	if err := d.rename(temp, path); err != nil {
		return err
	}
	return d.remove(old)
}

var folder = regexp.MustCompile(`^epoch-(\d{6,18})(\.old)?$`)

// entry is a folder named like a checkpoint.
type entry struct {
	name     string
	epoch    int
	old      bool
	complete bool  // it has a manifest
	unknown  error // why it is not known whether it has one
}

// list is the folders of dir that are named like checkpoints, the newest first.
func list(dir string) ([]entry, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []entry
	for _, e := range all {
		m := folder.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() {
			continue
		}
		epoch, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		_, err = os.Stat(filepath.Join(dir, e.Name(), manifestFile))
		one := entry{name: e.Name(), epoch: epoch, old: m[2] != "", complete: err == nil}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			one.unknown = err
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b entry) int {
		if a.epoch != b.epoch {
			return b.epoch - a.epoch
		}
		return strings.Compare(a.name, b.name)
	})
	return found, nil
}

// prune removes all but the newest keep checkpoints and the one just written, and
// what unfinished ones have left.
func prune(d disk, dir, written string, keep int) error {
	entries, err := list(dir)
	if err != nil {
		return err
	}
	var gone []string
	others := keep - 1
	for _, e := range entries {
		switch {
		case e.name == written:
		case e.complete && !e.old && others > 0:
			others--
		case e.unknown != nil: // it may be one that is worth keeping
		default:
			gone = append(gone, e.name)
		}
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if strings.HasPrefix(e.Name(), tempPrefix+"epoch-") {
			gone = append(gone, e.Name())
		}
	}
	for _, name := range gone {
		path := filepath.Join(dir, name)
		// Without its manifest, what is left of it passes for nothing.
		if err := d.remove(filepath.Join(path, manifestFile)); err != nil {
			return err
		}
		if err := d.remove(path); err != nil {
			return err
		}
	}
	return nil
}

// short is err without the path that the operating system's errors repeat.
func short(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s %s: %w", p.Op, filepath.Base(p.Path), p.Err)
	}
	return err
}

// isUnsupported says that a file system cannot sync folders.
func isUnsupported(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}
