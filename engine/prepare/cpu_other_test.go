//go:build !unix

package prepare

// cpuSeconds is not known here.
func cpuSeconds() float64 { return 0 }
