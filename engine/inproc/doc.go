// Package inproc joins partitions of one process: each has a device and a session of its
// own, and what servers of a cluster send to each other goes through memory here.
//
// Rows go from device to device where the devices can (kernels.Peer): the sender gathers
// them into a matrix without padding on its own device and waits for it, they are copied
// once, into such a matrix on the receiver's device, and only then does the receiver hear
// of them. So no row is read before it is whole, whatever streams and events the devices
// have. Otherwise they go as host rows. Nothing is encoded: what arrives is what was sent,
// bit by bit.
//
// A partition that fails ends the run of all, by an error that names its device.
package inproc
