//go:build unix

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of f for reading.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if size == 0 {
		return nil, unix.EINVAL
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
}

// allocate is size bytes outside the Go heap, for unmapFile to free.
func allocate(size int64) ([]byte, error) {
	if size == 0 {
		return nil, unix.EINVAL
	}
	data, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		adviseHuge(data)
	}
	return data, err
}

func unmapFile(data []byte) error { return unix.Munmap(data) }

// lock marks dir as in use until unlock is called or the process ends. Systems
// that cannot lock folders leave it unmarked.
func lock(dir string) (unlock func()) {
	d, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	if unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		d.Close()
		return func() {}
	}
	return func() { d.Close() }
}

// abandoned says that nobody has marked dir as in use.
func abandoned(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	return unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
