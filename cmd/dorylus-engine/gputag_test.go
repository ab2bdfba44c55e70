//go:build cuda

package main

// programTags are the build tags of the program under test.
const programTags = "cuda"
