package store

import "golang.org/x/sys/unix"

// exchange makes two folders change places in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// adviseHuge asks for huge pages; without them all works, somewhat slower.
func adviseHuge(data []byte) {
	if len(data) >= 2<<20 {
		unix.Madvise(data, unix.MADV_HUGEPAGE)
	}
}
