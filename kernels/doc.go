// Package kernels is the only Go door to numerical code. It declares the types
// that every device shares (Mat, CSR, Span), the Device and Stream interfaces,
// and the argument checks that run once, in Go, before any native call.
//
// Each op's meaning is the loop in its comment on Stream. kernels/ref computes
// that loop in plain Go with float64 sums and is the definition of correct;
// kernels/cpu runs it in AVX code; kernels/kerneltest holds them together.
package kernels
