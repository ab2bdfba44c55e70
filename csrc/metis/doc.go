// Package metis cuts graphs into clusters with METIS. It is linked under the
// build tag metis where cgo is on and libmetis is installed; otherwise Partition
// returns ErrNotLinked and Linked is false.
//
// METIS checks none of its input and answers some of it with a crash: dividing
// by zero for one part, running out of its arrays for graphs that are not
// symmetric. Partition checks what it can and runs METIS in a forked child, so
// that a crash becomes an error and the engine goes on.
package metis

import "errors"

// ErrNotLinked says that this program was built without METIS.
var ErrNotLinked = errors.New("METIS is not linked into this program: build with -tags metis where libmetis is installed")
