// Package cuda computes on NVIDIA GPUs. All that it asks of a GPU's driver goes
// through the small interface driver, which has an implementation over
// gorgonia.org/cu (driver_cu.go) and a fake in the tests; everything else here is
// plain Go that compiles everywhere.
//
// A program is built with GPU support by the tag cuda, with cgo, on Linux on amd64 or
// arm64; anywhere else Built is false and no driver opens. A program with GPU support
// needs no driver to start: the driver is looked for when it is first asked for.
//
// A driver may hang or end the process. Probe is therefore meant to be called in a
// process of its own, whose report travels as JSON.
package cuda
