// Package control sets up an emulated device that this process has opened, and asks
// what it has counted: marker.h from Go, for tests. It is empty without the tag cuda.
package control
