package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"dorylus/engine"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/devices"
	"dorylus/kernels/kerneltest"
)

// selftestLimit is how long the self-test of a GPU may take.
const selftestLimit = 10 * time.Minute

// selftestFlags say what devices checks.
type selftestFlags struct {
	on    bool
	gpus  string // as --gpu; "": whatever there is
	only  string // checks whose names begin so
	limit time.Duration
	child string // be the process that checks this device
	// products are those of GPUs, as --gpu-products.
	products string
}

// selfChecks is what the self-test of a device came to.
type selfChecks struct {
	// Checks and Failed are counts of the conformance suite.
	Checks int      `json:"checks,omitempty"`
	Failed []string `json:"failed,omitempty"`
}

// conform runs the conformance suite on what open opens, or the checks of it whose names
// begin with only.
func conform(open func() (kernels.Device, error), only string) (r selfChecks) {
	for _, c := range kerneltest.Cases() {
		if !strings.HasPrefix(c.Name, only) {
			continue
		}
		r.Checks++
		if err := c.Check(open); err != nil {
			r.Failed = append(r.Failed, fmt.Sprintf("%s: %v", c.Name, err))
		}
	}
	return r
}

// selftestChild checks one device in this process and prints the result as JSON. A GPU is
// opened once: after an error that loses its context, all that follows fails as well.
func (a *app) selftestChild(f *selftestFlags) error {
	open := func() (kernels.Device, error) { return devices.Open(f.child) }
	if strings.HasPrefix(f.child, gpuPrefix) {
		open = func() (kernels.Device, error) { return a.openGPU(f.child, f.products) }
	}
	return json.NewEncoder(a.out).Encode(conform(open, f.only))
}

// checkGPU runs the suite on a GPU in a process of its own, which a driver or a kernel may
// take down or hang.
func (a *app) checkGPU(ctx context.Context, name string, f *selftestFlags) (r selfChecks) {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.limit, fmt.Errorf("it did not end within %v", f.limit))
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "devices", "--selftest-device="+name, "--only="+f.only, "--gpu-products="+f.products)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = a.env, &out, &errs, time.Second
	err = cmd.Run()
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &r)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		if said != "" {
			said = " (" + said + ")"
		}
		r.Failed = append(r.Failed, fmt.Sprintf("the process that checks it: %v%s", err, said))
	}
	return r
}

// numbers are those of --gpu; nil: all.
func (f *selftestFlags) numbers() ([]int, error) {
	if f.gpus == "" {
		return nil, nil
	}
	numbers, err := engine.GPUNumbers(f.gpus)
	if err != nil {
		return nil, usagef("--gpu=%s: %w", f.gpus, err)
	}
	return numbers, nil
}

// verdict is the error of a self-test, nil if all went well.
func (f *selftestFlags) verdict(r *deviceReport) error {
	checks, failures, gpus := 0, 0, 0
	for i := range r.Devices {
		d := &r.Devices[i]
		checks, failures = checks+d.Checks, failures+len(d.Failed)
		if d.Checks > 0 && strings.HasPrefix(d.Name, gpuPrefix) {
			gpus++
		}
	}
	switch {
	case failures > 0:
		return fmt.Errorf("%d checks of the self-test failed; results of these devices cannot be trusted", failures)
	case f.gpus != "" && gpus == 0:
		return fmt.Errorf("--gpu=%s: no GPU was checked: %s", f.gpus, f.whyNone(&r.CUDA))
	case checks == 0:
		return fmt.Errorf("the self-test has checked nothing: no check has a name that begins with --only=%s", f.only)
	}
	return nil
}

// whyNone is why there is no GPU to check.
func (f *selftestFlags) whyNone(r *cuda.Report) string {
	if err := r.Refusal(); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return "those named cannot be used, or no check has a name that begins with --only=" + f.only
}
