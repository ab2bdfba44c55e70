// Package conform holds the tests of kernels/cuda that need a whole driver: the emulated
// device (csrc/cuemu). A process opens one driver only, so they are apart from those of
// kernels/cuda.
package conform
