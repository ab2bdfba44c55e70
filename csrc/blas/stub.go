//go:build !cgo || !amd64 || noblas

package blas

// Built says whether OpenBLAS is in this binary.
const Built = false
