//go:build !unix

package store

import (
	"errors"
	"os"
)

// Where there is no mmap, files are read into memory.
func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func allocate(int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) error { return nil }

// Where folders cannot be locked, none counts as abandoned: a killed writer's
// leftovers stay until somebody removes them.
func lock(string) (unlock func()) { return func() {} }

func abandoned(string) bool { return false }
