package cuda

import "unsafe"

// The interfaces below are all that this package asks of a driver. Their errors are
// *Error. Calls that touch a device's memory, streams or kernels need its context to be
// current on the calling thread (context.SetCurrent), which is the worker's business.

// driver is a CUDA driver that has been opened and initialised.
type driver interface {
	// Info is what the driver says of itself.
	Info() driverInfo
	// Devices is the number of GPUs, those hidden by CUDA_VISIBLE_DEVICES left out.
	Devices() (int, error)
	// Device describes GPU i of Devices.
	Device(i int) (deviceInfo, error)
	// Retain makes GPU i's primary context, or takes part in it. It does not make it
	// current.
	Retain(i int) (context, error)
	// Reaches says whether GPU i can read the memory of GPU other.
	Reaches(i, other int) (bool, error)
	// Loads says whether a shared library of that name can be loaded.
	Loads(library string) bool
	// CUBLAS loads the first of files that is a usable cuBLAS; the error of none is no
	// *Error but says what was tried.
	CUBLAS(files []string) (library, error)

	// HostAlloc gives n bytes of pinned host memory; HostFree takes them back.
	HostAlloc(n int) (unsafe.Pointer, error)
	HostFree(p unsafe.Pointer) error
}

// driverInfo is what a driver says of itself.
type driverInfo struct {
	Library  string // the file, as it was found
	Version  int    // CUDA version: 12080 is 12.8
	Emulated bool   // it is the emulated device of the tests
	Missing  []string
}

// deviceInfo is what is fixed of a GPU.
type deviceInfo struct {
	Name           string
	Major, Minor   int   // compute capability
	Bytes          int64 // of memory
	L2             int   // bytes of level-2 cache
	Multiprocessor int   // number of them
	Shared         int   // bytes of shared memory that a block may ask for
}

// context is a GPU's primary context. All but SetCurrent and Release want it current.
type context interface {
	SetCurrent() error
	// Release gives the context up; what was made in it must not be used any more.
	Release() error
	// Synchronize waits for all work and reports errors of earlier launches.
	Synchronize() error
	// Memory is the device's free and total memory in bytes.
	Memory() (free, total int64, err error)

	Alloc(bytes int64) (address, error)
	Free(address) error
	// Upload and Download copy len(host) bytes and return when it is done.
	Upload(to address, host []byte) error
	Download(host []byte, from address) error

	// LoadModule loads PTX or a cubin. The detail of a failure is the compiler's text.
	LoadModule(image []byte) (module, error)
	// NewStream makes a stream that does not wait for stream 0.
	NewStream() (stream, error)
	// NewEvent makes an event, with a time of its own if timed.
	NewEvent(timed bool) (event, error)
	// Reach lets this context read the memory of another's GPU from now on. That it does
	// already is no error.
	Reach(other context) error
}

// address is a place in a device's memory.
type address uintptr

type module interface {
	// Function finds a kernel. One that is not there is code 500.
	Function(name string) (function, error)
	Unload() error
}

type function interface {
	// AllowShared lets the kernel use that much dynamic shared memory, which is needed
	// above 48 KiB.
	AllowShared(bytes int) error
	// Launch starts a grid of one dimension. Each argument fills a box of 8 bytes, in
	// which smaller types lie at the low end.
	Launch(s stream, blocks, threads, shared int, args []uint64) error
}

// library is cuBLAS.
type library interface {
	File() string    // as it was opened
	Version() string // "12.8.4"
	Emulated() bool  // it is the one of the tests, for the emulated device
	// Products makes what products on s are made with. workspace is theirs, on 256 bytes,
	// until they are closed. Errors of it and of what it makes are *LibraryError.
	Products(s stream, workspace address, bytes int64) (products, error)
}

// products are those of cuBLAS on a stream. They belong to the worker.
type products interface {
	// GEMM queues dst = a·b, or dst + a·b where add is set, of matrices as GEMM has them.
	GEMM(p product) error
	Close() error
}

// stream is a queue of work on a device.
type stream interface {
	// The copies are done when the stream gets there: host is pinned memory, and stays
	// untouched until then.
	Upload(to address, host unsafe.Pointer, bytes int64) error
	Download(host unsafe.Pointer, from address, bytes int64) error
	Copy(to, from address, bytes int64) error
	// CopyPeer copies from the memory of there's GPU to that of here's, which is the
	// stream's.
	CopyPeer(to address, here context, from address, there context, bytes int64) error
	// Fill sets bytes to a value.
	Fill(to address, value byte, bytes int64) error
	// Wait lets what comes later wait for an event that was recorded.
	Wait(event) error
	// Done says whether all work is done, without waiting.
	Done() (bool, error)
	Synchronize() error
	Destroy() error
}

// event is a point in a stream's work.
type event interface {
	Record(stream) error
	Done() (bool, error)
	Synchronize() error
	// Since is the milliseconds from an earlier event to this one, both timed and done.
	Since(event) (float64, error)
	Destroy() error
}
