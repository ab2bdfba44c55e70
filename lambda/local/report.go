package local

import (
	"fmt"
	"strings"
	"time"
)

// version is the only one there is.
const version = "$LATEST"

func startLine(c *call) []byte {
	return fmt.Appendf(nil, "START RequestId: %s Version: %s\n", c.id, version)
}

// report is what Lambda prints at a call's end.
type report struct {
	call       *call
	took, init time.Duration // init is 0 unless the environment was new
	memoryMB   int
	peakMB     int // 0: not known
	errorType  string
}

// billedMS is the call and the start of its environment, which a function with a
// runtime of its own pays for, rounded up together.
func (r *report) billedMS() int64 { return milliseconds(r.took + r.init) }

func (r *report) lines() []byte {
	var b strings.Builder
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	fmt.Fprintf(&b, "END RequestId: %s\n", r.call.id)
	fmt.Fprintf(&b, "REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %d ms\tMemory Size: %d MB\tMax Memory Used: %d MB\t",
		r.call.id, ms(r.took), r.billedMS(), r.memoryMB, r.peakMB)
	if r.init > 0 {
		fmt.Fprintf(&b, "Init Duration: %.2f ms\t", ms(r.init))
	}
	switch r.errorType {
	case "":
	case "Sandbox.Timedout":
		b.WriteString("Status: timeout\t")
	default:
		fmt.Fprintf(&b, "Status: error\tError Type: %s\t", r.errorType)
	}
	b.WriteString("\n")
	return []byte(b.String())
}
