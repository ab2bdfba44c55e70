// Package cpu computes on the host's processor: sparse ops in our own C, compiled
// once per instruction set, and matrix products in OpenBLAS.
//
// An op is one single-threaded native call over a span of rows, made on the
// caller's goroutine when the op is called: parallelism is the caller's, by
// streams and spans. Calls should last from 0.1 to 10 milliseconds. SpMM on a
// graph larger than the caches is fastest with spans of some ten thousand rows or
// more, since it then works through the sources tile by tile (see graph.go).
//
// DORYLUS_ISA forces an instruction set by name; DORYLUS_TILE_KIB sets how much
// cache a tile fills, 0 for no tiles. Neither falls back silently: a value that
// cannot be used is an error of Open. OPENBLAS_CORETYPE forces OpenBLAS's kernel
// and is named by Describe. With the build tag noblas, products are made by a
// short kernel of our own instead, at a third of the speed.
//
// Matrices come from one arena outside the Go heap (see arena.go). A build
// without cgo, or for another system than Linux on amd64, has no such device:
// Open says so.
package cpu
