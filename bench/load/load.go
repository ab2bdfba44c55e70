// Package load describes the machine of a measurement and how busy other programs have
// kept it meanwhile.
package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is where the measurements were made.
type Machine struct {
	CPU        string `json:"cpu"`
	Device     string `json:"device"` // the kernels
	Processors int    `json:"processors"`
	// BusyElsewhere is the share of the processors' time that programs other than ours
	// have used meanwhile: the mean, and that of the worst run. Shared says that it was
	// much; nil: it is not known here.
	BusyElsewhere float64 `json:"busy_elsewhere"`
	BusyMost      float64 `json:"busy_elsewhere_at_most"`
	Shared        *bool   `json:"shared"`
}

// muchElsewhere is the share from which on times are not those of a quiet machine.
const muchElsewhere = 0.05

// Describe is the machine by what the engine's "devices --json" says, text: the processor
// that it takes by default.
func Describe(text []byte) (Machine, error) {
	m := Machine{Processors: runtime.NumCPU()}
	var s struct {
		Devices []struct {
			Default bool   `json:"default"`
			Detail  string `json:"detail"`
		} `json:"devices"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return m, fmt.Errorf("read the engine's devices: %w", err)
	}
	for _, d := range s.Devices {
		if d.Default {
			m.CPU = d.Detail
			return m, nil
		}
	}
	return m, errors.New("the engine has no default device")
}

// Finish sums up how busy others have kept the machine.
func (m *Machine) Finish(loads []Load) {
	var wall, other float64
	for _, x := range loads {
		wall += x.wall
		other += x.other
		m.BusyMost = max(m.BusyMost, x.other/x.wall)
	}
	if wall == 0 {
		return
	}
	m.BusyElsewhere = other / wall
	shared := m.BusyElsewhere > muchElsewhere
	m.Shared = &shared
}

// Load is processor time while a program of ours ran, in seconds of all processors: what
// there was, and what others have used.
type Load struct{ wall, other float64 }

// Watch is the beginning of a load.
type Watch struct {
	start time.Time
	busy  float64
	known bool
}

// Begin starts to watch.
func Begin() Watch {
	busy, err := busySeconds()
	return Watch{time.Now(), busy, err == nil}
}

// Since is the load up to the end of a program, whose children count as it. Runs shorter
// than a second say nothing.
func (w Watch) Since(p *os.ProcessState) (Load, bool) {
	busy, err := busySeconds()
	took := time.Since(w.start).Seconds()
	if err != nil || !w.known || p == nil || took < 1 {
		return Load{}, false
	}
	own := p.UserTime() + p.SystemTime()
	return Load{took * float64(runtime.NumCPU()), max(0, busy-w.busy-own.Seconds())}, true
}

// busySeconds is how long the processors have been at work since the start of the
// machine, as Linux counts it.
func busySeconds() (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	const idle, waiting, ticks = 4, 5, 100
	sum := 0.0
	for i, f := range fields[1:8] { // user, nice, system, idle, waiting for disks, interrupts
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %q is no number", f)
		}
		if i+1 != idle && i+1 != waiting {
			sum += n
		}
	}
	return sum / ticks, nil
}
