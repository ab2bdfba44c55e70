package main

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

// machine is where the measurements were made.
type machine struct {
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

// machine describes the processor that the engine takes by default.
func (l *lab) machine() (machine, error) {
	m := machine{Processors: runtime.NumCPU()}
	text, err := l.call("devices", "--json")
	if err != nil {
		return m, err
	}
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

// finish sums up how busy others have kept the machine.
func (m *machine) finish(loads []load) {
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

// load is processor time while a program of ours ran, in seconds of all processors: what
// there was, and what others have used.
type load struct{ wall, other float64 }

// watch is the beginning of a load.
type watch struct {
	start time.Time
	busy  float64
	known bool
}

func watchLoad() watch {
	busy, err := busySeconds()
	return watch{time.Now(), busy, err == nil}
}

// since is the load up to the end of a program, whose children count as it. Runs shorter
// than a second say nothing.
func (w watch) since(p *os.ProcessState) (load, bool) {
	busy, err := busySeconds()
	took := time.Since(w.start).Seconds()
	if err != nil || !w.known || p == nil || took < 1 {
		return load{}, false
	}
	own := p.UserTime() + p.SystemTime()
	return load{took * float64(runtime.NumCPU()), max(0, busy-w.busy-own.Seconds())}, true
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
