package spill

import "dorylus/kernels"

// Line is one of the three queues of a device's stream. They run beside each other but
// for what Await orders.
type Line uint8

// The lines.
const (
	Compute Line = iota // the ops of kernels.Stream
	In                  // Upload
	Out                 // Download
)

// Mark is a point in a line, valid until the next Wait.
type Mark int

// Lower is a stream of the device beneath. All methods queue, in the order of the
// calls; its ops take resident matrices, and those of the host that kernels.Stream
// allows.
type Lower interface {
	kernels.Stream
	// Upload copies pinned host memory to an address of the device, on the line In.
	Upload(to uintptr, from []float32)
	// Download copies to pinned host memory, on the line Out.
	Download(to []float32, from uintptr)
	// Mark is the point that a line has come to.
	Mark(l Line) Mark
	// Await lets what comes later on a line wait for a point in another.
	Await(l Line, m Mark)
	// HostStep runs f on the host when all lines are done with what was queued before
	// it; what comes later on any line waits for it. Its error is the stream's.
	HostStep(op string, f func() error)
}

// Shifter is implemented by a Lower whose epilogues can be told at which column of the
// whole row they begin, for dropout.
type Shifter interface {
	// EpilogueAt lets column 0 of the outputs of later ops count as column c.
	EpilogueAt(c int)
}
