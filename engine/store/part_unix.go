//go:build unix

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// adviseRandom says that a mapped file is not read in order, so that the system reads
// no more of it than is touched.
func adviseRandom(file []byte) { unix.Madvise(file, unix.MADV_RANDOM) }

// adviseNormal takes adviseRandom back for the pages of file[lo:hi].
func adviseNormal(file []byte, lo, hi int) {
	if lo -= lo % os.Getpagesize(); lo < hi {
		unix.Madvise(file[lo:hi], unix.MADV_NORMAL)
	}
}

// dropPages lets go of the pages of a mapped file that lie within file[lo:hi]. They are
// read again when they are touched.
func dropPages(file []byte, lo, hi int) {
	page := os.Getpagesize()
	lo = (lo + page - 1) / page * page
	if hi < len(file) {
		hi -= hi % page
	}
	if lo < hi {
		unix.Madvise(file[lo:hi], unix.MADV_DONTNEED)
	}
}
