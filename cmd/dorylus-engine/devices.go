package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"dorylus/csrc/blas"
	"dorylus/csrc/metis"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/devices"
	"dorylus/kernels/kerneltest"
)

// deviceReport is what the devices command shows.
type deviceReport struct {
	Devices []deviceLine `json:"devices"`
	Cores   int          `json:"cores"`
	// OpenBLAS and METIS say whether they are linked into this program. Release
	// and core of OpenBLAS are in the devices' details.
	OpenBLAS bool `json:"openblas"`
	METIS    bool `json:"metis"`
	// CUDA is what the driver of GPUs says, or why there is none.
	CUDA    cuda.Report `json:"cuda"`
	Version string      `json:"version"`
}

type deviceLine struct {
	Name    string `json:"name"`
	Usable  bool   `json:"usable"`
	Default bool   `json:"default"`
	Why     string `json:"why,omitempty"` // it is not usable
	Detail  string `json:"detail,omitempty"`
	// Checks and Failed are counts of the conformance suite, with --selftest.
	Checks int      `json:"checks,omitempty"`
	Failed []string `json:"failed,omitempty"`
}

func (a *app) devicesCommand() *cobra.Command {
	var asJSON, selftest, probe bool
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "Instruction sets and GPUs, and why one cannot be used",
		Long: `Devices lists what this program can compute on here, and for everything else the reason. --selftest
runs the conformance suite on each usable device: every operation against its definition.

A GPU's driver is asked by a process of its own, so that one that hangs is a line of output. It is the
machine's, or the library that DORYLUS_CUDA_DRIVER names.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if probe {
				return a.probeGPUs()
			}
			if limit <= 0 {
				return usagef("--timeout=%v: give a time above 0", limit)
			}
			return a.devices(asJSON, selftest, limit)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&selftest, "selftest", false, "check every operation of each usable device")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().DurationVar(&limit, "timeout", probeLimit, "how long a GPU's driver may take to answer")
	cmd.Flags().BoolVar(&probe, "probe-gpus", false, "be the process that asks the driver, and print its report")
	cmd.Flags().Lookup("probe-gpus").Hidden = true
	return cmd
}

func (a *app) devices(asJSON, selftest bool, limit time.Duration) error {
	r := deviceReport{
		Cores: runtime.GOMAXPROCS(0), OpenBLAS: blas.Built, METIS: metis.Linked(), Version: versionText(),
	}
	failures := 0
	for _, d := range devices.Available() {
		if strings.HasPrefix(d.Name, "cuda") {
			continue // the driver knows better
		}
		line := deviceLine{Name: d.Name, Usable: d.OK, Default: d.Default, Why: d.Why, Detail: d.Detail}
		if selftest && d.OK {
			a.note(asJSON, "checking %s ...", d.Name)
			line.check()
			failures += len(line.Failed)
		}
		r.Devices = append(r.Devices, line)
	}
	r.CUDA = a.askGPUs(limit)
	r.Devices = append(r.Devices, gpuLines(r.CUDA)...)
	var err error
	if asJSON {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.print(a)
	}
	if err == nil && failures > 0 {
		err = fmt.Errorf("%d checks of the self-test failed; results of these devices cannot be trusted", failures)
	}
	return err
}

// check runs the conformance suite.
func (l *deviceLine) check() {
	open := func() (kernels.Device, error) { return devices.Open(l.Name) }
	for _, c := range kerneltest.Cases() {
		l.Checks++
		if err := c.Check(open); err != nil {
			l.Failed = append(l.Failed, fmt.Sprintf("%s: %v", c.Name, err))
		}
	}
}

func (r *deviceReport) print(a *app) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, d := range r.Devices {
		state, text := "usable", d.Detail
		switch {
		case !d.Usable:
			state, text = "no", d.Why
		case d.Default:
			state = "default"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, state, text)
		if d.Checks > 0 {
			fmt.Fprintf(w, "\t\tself-test: %d of %d checks passed\n", d.Checks-len(d.Failed), d.Checks)
		}
		for _, f := range d.Failed {
			fmt.Fprintf(w, "\t\tfailed: %s\n", f)
		}
	}
	dense := "OpenBLAS"
	if !r.OpenBLAS {
		dense = "this program's own loops (OpenBLAS is not linked; ./build.sh links it where it is installed)"
	}
	order := "METIS"
	if !r.METIS {
		order = "label propagation (METIS is not linked; ./build.sh links it where libmetis-dev is installed)"
	}
	fmt.Fprintf(w, "\ncores\t\t%d\ndense products\t\t%s\nvertex order\t\t%s\nversion\t\t%s\n", r.Cores, dense, order, r.Version)
	return w.Flush()
}
