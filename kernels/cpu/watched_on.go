//go:build (race || asan) && cgo && amd64 && linux

package cpu

// watched says that a detector is on that sees the Go heap only.
const watched = true
