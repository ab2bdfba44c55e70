package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"dorylus/csrc/blas"
	"dorylus/csrc/metis"
	"dorylus/engine"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/devices"
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
	Name       string `json:"name"`
	Usable     bool   `json:"usable"`
	Default    bool   `json:"default"`
	Why        string `json:"why,omitempty"` // it is not usable
	Detail     string `json:"detail,omitempty"`
	selfChecks        // with --selftest
}

func (a *app) devicesCommand() *cobra.Command {
	var asJSON, probe bool
	var f selftestFlags
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "Instruction sets and GPUs, and why one cannot be used",
		Long: `Devices lists what this program can compute on here, and for everything else the reason. --selftest
runs the conformance suite on each usable device: every operation against its definition. With --gpu only
GPUs are checked, and there has to be one. --gpu-products=cublas has GPUs make products by NVIDIA's library, and
checks them so. Exit 1 if a check fails, or nothing can be checked.

A GPU's driver is asked by a process of its own, so that one that hangs is a line of output. It is the
machine's, or the library that DORYLUS_CUDA_DRIVER names, and cuBLAS what the system finds or DORYLUS_CUBLAS
names. Exact images of the kernels (make cubin) are looked for in the folder cubin beside the program, or the one
that DORYLUS_CUBIN names; without one the driver compiles PTX, once. A GPU is checked by a process of its own,
too, within --selftest-timeout.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case probe:
				return a.probeGPUs()
			case f.child != "":
				return a.selftestChild(&f)
			case limit <= 0:
				return usagef("--timeout=%v: give a time above 0", limit)
			case f.limit <= 0:
				return usagef("--selftest-timeout=%v: give a time above 0", f.limit)
			}
			if err := oneOf("--gpu-products="+f.products, "products", f.products, engine.GPUProducts); err != nil {
				return err
			}
			f.on = f.on || f.gpus != "" || f.only != "" || f.products != cuda.OwnProducts
			return a.devices(cmd.Context(), asJSON, &f, limit)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.on, "selftest", false, "check every operation of each usable device")
	cmd.Flags().StringVar(&f.gpus, "gpu", "", "check GPUs only: auto (all that can be used), or the driver's numbers, as 0 or 0,1")
	cmd.Flags().StringVar(&f.products, "gpu-products", cuda.OwnProducts, "what makes the products of GPUs that are checked: "+list(engine.GPUProducts))
	cmd.Flags().StringVar(&f.only, "only", "", "check only what has a name that begins so, such as SpMM")
	cmd.Flags().DurationVar(&f.limit, "selftest-timeout", selftestLimit, "how long the checks of a GPU may take")
	cmd.Flags().StringVar(&f.child, "selftest-device", "", "be the process that checks this device, and print the result")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().DurationVar(&limit, "timeout", probeLimit, "how long a GPU's driver may take to answer")
	cmd.Flags().BoolVar(&probe, "probe-gpus", false, "be the process that asks the driver, and print its report")
	cmd.Flags().Lookup("probe-gpus").Hidden = true
	cmd.Flags().Lookup("selftest-device").Hidden = true
	complete(cmd, "gpu-products", engine.GPUProducts)
	return cmd
}

func (a *app) devices(ctx context.Context, asJSON bool, f *selftestFlags, limit time.Duration) error {
	numbers, err := f.numbers()
	if err != nil {
		return err
	}
	r := deviceReport{
		Cores: runtime.GOMAXPROCS(0), OpenBLAS: blas.Built, METIS: metis.Linked(), Version: versionText(),
	}
	for _, d := range devices.Processors() {
		line := deviceLine{Name: d.Name, Usable: d.OK, Default: d.Default, Why: d.Why, Detail: d.Detail}
		if f.on && f.gpus == "" && d.OK {
			a.note(asJSON, "checking %s ...", d.Name)
			line.selfChecks = conform(func() (kernels.Device, error) { return devices.Open(d.Name) }, f.only)
		}
		r.Devices = append(r.Devices, line)
	}
	r.CUDA = a.askGPUs(limit)
	lines := gpuLines(r.CUDA)
	for i := range lines[1:] {
		line := &lines[i+1]
		if !f.on || !line.Usable || numbers != nil && !slices.Contains(numbers, i) {
			continue
		}
		a.note(asJSON, "checking %s ...", line.Name)
		line.selfChecks = a.checkGPU(ctx, line.Name, f)
	}
	r.Devices = append(r.Devices, lines...)
	if asJSON {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.print(a)
	}
	if f.on && err == nil {
		err = f.verdict(&r)
	}
	return err
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
