//go:build !unix

package store

// Where there is no mmap there is nothing to advise.
func adviseRandom([]byte) {}

func adviseNormal(_ []byte, _, _ int) {}

func dropPages(_ []byte, _, _ int) {}
