package local

import (
	"fmt"
	"strings"
)

// MBPerCPU is the memory, in MB, that comes with one processor.
const MBPerCPU = 1769

// cpus is a function's share of processors.
func cpus(memoryMB int) float64 { return float64(memoryMB) / MBPerCPU }

// processors is GOMAXPROCS for a share, where nothing finer holds it.
func processors(memoryMB int) int { return max(1, (memoryMB+MBPerCPU/2)/MBPerCPU) }

// softLimits are the variables that make a Go worker keep to its share by itself:
// whole processors, and a collector that works harder near the limit.
func softLimits(memoryMB int) []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", processors(memoryMB)),
		fmt.Sprintf("GOMEMLIMIT=%dMiB", memoryMB*9/10),
	}
}

// softText says what softLimits do, and why nothing stricter is used.
func softText(memoryMB int, memory, why string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "cpu: GOMAXPROCS=%d for a share of %.3f; memory: GOMEMLIMIT=%dMiB", processors(memoryMB), cpus(memoryMB), memoryMB*9/10)
	if memory != "" {
		fmt.Fprintf(&b, " and %s", memory)
	}
	fmt.Fprintf(&b, " (%s)", why)
	return b.String()
}
