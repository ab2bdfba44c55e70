// Package cuemu is the emulated CUDA device: a shared library with the driver's entry
// points that runs the kernels' sources on the processor. Tests open it where a driver
// would be, so that the whole GPU path runs on machines without one.
//
//	host.h    what a kernel sees; included by the kernels' common header
//	src/      fibers, blocks, memory, streams, entry points
//	marker.h  settings, injected faults, counters: what a real driver has not; bind.go: from Go
//	build.sh  makes the library
//
// It finds missing barriers and waits, accesses outside of an allocation, wrong
// arguments, leaks; it says nothing of speed, of coalescing or of the memory model. In
// every process it is chosen by name, never as a fallback.
//
// A thread of a kernel is a fiber. The threads of a block take turns, in an order that
// the seed gives, and hand over only where they wait for each other. Work in a stream
// runs when somebody waits for it, and then no more of other streams than events ask
// for: what does not wait reads poison. All device work and all calls are behind one
// lock.
package cuemu
