package store

import "golang.org/x/sys/unix"

// exchange makes two folders change places in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// adviseHuge asks for huge pages for the whole ones within data; without them all
// works, somewhat slower.
func adviseHuge(data []byte) {
	const huge = 2 << 20
	skip := int(-address(data) % huge)
	if whole := (len(data) - skip) / huge * huge; whole > 0 {
		unix.Madvise(data[skip:skip+whole], unix.MADV_HUGEPAGE)
	}
}
