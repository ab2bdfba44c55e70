// Package cuda holds the device kernels of GPU mode: CUDA C++ (*.cu over dkernel.h) and
// the PTX made from it (make ptx), which is committed and, with the tag cuda, embedded.
// README.md says of each kernel what its grid, block and arguments are.
//
// The same sources, compiled by a host compiler with DK_HOST, run on the emulated
// device (csrc/cuemu).
package cuda
