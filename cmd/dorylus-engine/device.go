package main

import (
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// openDevice opens the kernels of that name.
func openDevice(name string) (kernels.Device, error) { return ref.Open() }
