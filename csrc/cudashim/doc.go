// Package cudashim stands between gorgonia.org/cu and the CUDA driver, so that one
// binary serves machines with and without one. It defines every driver function that
// cu refers to as a jump through a table; Open finds a driver at run time and fills
// the table. Nothing is linked against the driver, and none of the functions is
// exported: libraries opened later meet the real ones.
//
// Before Open, and where it has failed, a driver function returns 100 (no device);
// one that the driver lacks returns 500 (not found). cuInit returns success until
// then, since cu calls it at start-up and ends the process where it fails: Open calls
// the real one.
//
// lib/libcuda.so is no library but a linker script: cu asks for -lcuda. symbols.h and
// the tramp files are made of ../include/cuda.h by go generate.
//
// Without the tag cuda, without cgo, or elsewhere than on Linux on amd64 and arm64,
// only Built, Open, Status and Error exist, and Open refuses.
package cudashim

//go:generate go run gen.go
