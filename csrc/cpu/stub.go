//go:build !cgo || !amd64

package native

// Built says whether native code is in this binary.
const Built = false
