package ckpt

import (
	"io"
	"os"
)

// disk is every change that Save makes to a file system, so that tests can let each
// of them be the last.
type disk interface {
	mkdir(path string) error
	create(path string) (file, error)
	rename(from, to string) error
	remove(path string) error // with all that is in it
	syncDir(path string) error
}

type file interface {
	io.WriteCloser
	Sync() error
}

// osDisk is the real one.
type osDisk struct{}

func (osDisk) mkdir(path string) error          { return os.MkdirAll(path, 0o777) }
func (osDisk) create(path string) (file, error) { return os.Create(path) }
func (osDisk) rename(from, to string) error     { return os.Rename(from, to) }
func (osDisk) remove(path string) error         { return os.RemoveAll(path) }

// syncDir makes the names in a folder survive a power cut. File systems that cannot
// do it for folders are taken as they are.
func (osDisk) syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !isUnsupported(err) {
		return err
	}
	return nil
}
