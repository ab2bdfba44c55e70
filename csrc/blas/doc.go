// Package blas is single-precision matrix multiplication by OpenBLAS, linked from
// its static archive. Each call runs on the calling thread alone; any number of
// goroutines may call at once.
//
// OpenBLAS picks a kernel for the processor when the process starts, or the one
// named by OPENBLAS_CORETYPE. Another kernel means other bits in the last place,
// as does another number of rows in a call: see Core.
//
// A binary built with the tag noblas, or without cgo, or for another processor
// than amd64, has no OpenBLAS: Built is false there and nothing else exists.
package blas
