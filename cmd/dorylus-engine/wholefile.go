package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wholeFile is a file that takes the place of the one at path once it is complete, or is
// gone without a trace.
type wholeFile struct {
	*os.File
	path string
}

// unfinished is the pattern of the names of files that are to be path one day; tag tells
// those of one program from those of another, "" for none.
func unfinished(path, tag string) string {
	if tag != "" {
		tag = strings.ReplaceAll(tag, string(filepath.Separator), "_") + "-"
	}
	return "." + filepath.Base(path) + ".tmp-" + tag + "*"
}

// newWholeFile makes one beside path.
func newWholeFile(path, tag string) (*wholeFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished(path, tag))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, bare(err))
	}
	return &wholeFile{f, path}, nil
}

// keep puts the file in its place.
func (w *wholeFile) keep() error {
	err := errors.Join(w.Sync(), w.Close())
	if err == nil {
		err = os.Chmod(w.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(w.Name(), w.path)
	}
	if err != nil {
		w.discard()
		return fmt.Errorf("write %s: %w", w.path, bare(err))
	}
	return nil
}

// discard removes the file. Nobody is to know of an error: the reason for it is worse.
func (w *wholeFile) discard() {
	_ = w.Close()
	_ = os.Remove(w.Name())
}

// writeFile replaces the file at path whole or not at all.
func writeFile(path string, data []byte) error {
	w, err := newWholeFile(path, "")
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		w.discard()
		return fmt.Errorf("write %s: %w", path, bare(err))
	}
	return w.keep()
}
