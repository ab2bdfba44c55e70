// Package watch lets the tests of kernels/cuda see every launch of a kernel, and make
// small what is too large for them. All is to be set before a device is opened.
package watch

// Launch, if set, is told of each kernel that is launched and of its arguments, a letter
// each: p pointer, l int64, i int32, f float, u uint64. It is called on the devices'
// workers.
var Launch func(kernel, letters string)

// Chunk, if not 0, is the number of bytes of a staging chunk.
var Chunk int64

// Parts, if not 0, is about how many bytes the chunks of long rows, or the sums of blocks,
// may take at a time.
var Parts int64
