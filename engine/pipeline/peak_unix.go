//go:build unix

package pipeline

import (
	"runtime"
	"syscall"
)

// peakMemory is the largest resident size of the process so far, in bytes.
func peakMemory() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) * 1024
}
