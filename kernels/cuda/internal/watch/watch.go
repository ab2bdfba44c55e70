// Package watch lets the tests of kernels/cuda see every launch of a kernel.
package watch

// Launch, if set, is told of each kernel that is launched and of its arguments, a letter
// each: p pointer, l int64, i int32, f float, u uint64. It is to be set before a device
// is opened, and is called on the devices' workers.
var Launch func(kernel, letters string)
