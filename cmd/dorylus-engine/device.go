package main

import (
	"dorylus/kernels"
	"dorylus/kernels/devices"
)

// openDevice opens the kernels of that name.
func openDevice(name string) (kernels.Device, error) { return devices.Open(name) }
