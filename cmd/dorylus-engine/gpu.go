package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dorylus/kernels/cuda"
)

// probeLimit is how long a GPU's driver may take to answer.
const probeLimit = 10 * time.Second

// askGPUs reports what there is to compute with on GPUs. A process of its own asks the
// driver, which may hang or end whoever calls it.
func (a *app) askGPUs(limit time.Duration) cuda.Report {
	if !cuda.Built {
		return cuda.Probe(cuda.Options{})
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, "devices", "--probe-gpus")
	cmd.Env = a.env
	return cuda.Ask(cmd, limit)
}

// probeGPUs is what that process does.
func (a *app) probeGPUs() error {
	return json.NewEncoder(a.out).Encode(cuda.Probe(a.gpuFiles(0)))
}

// driverPath is the driver's library that the environment names; "": this machine's.
func (a *app) driverPath() string { return a.namedPath(cuda.DriverEnv) }

// gpuFiles are the options of GPU n that name files.
func (a *app) gpuFiles(n int) cuda.Options {
	return cuda.Options{Driver: a.driverPath(), CUBLAS: a.namedPath(cuda.CUBLASEnv), Cubins: a.cubinFolder(), Ordinal: n}
}

// cubinFolder is where exact images of the kernels may lie: the folder that the environment
// names, or the one beside the program.
func (a *app) cubinFolder() string {
	if path := a.namedPath(cuda.CubinEnv); path != "" {
		return path
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	if beside := filepath.Join(filepath.Dir(self), "cubin"); exists(beside) {
		return beside
	}
	return "" // nobody has asked for one
}

// namedPath is the file or folder that a variable names; "": it names none.
func (a *app) namedPath(variable string) string {
	path := ""
	for _, kv := range a.env {
		if value, ok := strings.CutPrefix(kv, variable+"="); ok {
			path = value
		}
	}
	if exists(path) { // a bare name would be looked for among the system's libraries
		if full, err := filepath.Abs(path); err == nil {
			path = full
		}
	}
	return path
}

// gpuLines are the lines of the devices command for GPUs: one for the driver, one for
// each device.
func gpuLines(r cuda.Report) []deviceLine {
	driver := deviceLine{Name: "cuda", Usable: r.Problem == nil}
	if r.Problem != nil {
		driver.Why = r.Problem.String()
	} else {
		driver.Detail = driverText(r)
	}
	lines := []deviceLine{driver}
	for _, d := range r.Devices {
		line := deviceLine{Name: d.Name, Usable: d.Usable, Detail: d.Model}
		if d.Capability != "" {
			line.Detail += fmt.Sprintf(", compute capability %s, %.1f GiB", d.Capability, gibi(d.Bytes))
		}
		if d.Usable {
			image := "PTX " + d.PTX
			if d.Cubin != "" {
				image = "exact image " + d.Cubin
			}
			line.Detail += fmt.Sprintf(" (%.1f free), %s", gibi(d.Free), image)
			if d.CubinNote != "" {
				line.Detail += "; " + d.CubinNote
			}
		} else {
			line.Why = strings.TrimPrefix(line.Detail+": ", ": ") + d.Problem.String()
			line.Detail = ""
		}
		lines = append(lines, line)
	}
	return lines
}

// driverText is "driver 12.8, libcuda.so.1; optional: cublas 12.8.4 (libcublas.so.12),
// cusparse no, nccl no".
func driverText(r cuda.Report) string {
	text := fmt.Sprintf("driver %s, %s", r.Driver, r.Library)
	if r.Emulated {
		text = fmt.Sprintf("EMULATED device, no GPU: %s", r.Library)
	}
	var parts []string
	for _, name := range []string{"cublas", "cusparse", "nccl"} {
		state := "no"
		if r.Optional[name] {
			state = "yes"
		}
		switch l := r.CUBLAS; {
		case name != "cublas" || l == nil:
		case l.Problem == "":
			state = fmt.Sprintf("%s (%s)", l.Version, l.File)
		case l.Named:
			state = fmt.Sprintf("no (%s)", l.Problem)
		}
		parts = append(parts, name+" "+state)
	}
	text += "; optional: " + strings.Join(parts, ", ")
	if r.Visible != nil {
		text += fmt.Sprintf("; CUDA_VISIBLE_DEVICES=%s", *r.Visible)
	}
	return text
}

func gibi(bytes int64) float64 { return float64(bytes) / (1 << 30) }
