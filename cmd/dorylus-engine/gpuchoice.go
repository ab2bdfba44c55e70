package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dorylus/engine"
	"dorylus/engine/cost"
	"dorylus/kernels/cuda"
)

// gpuChoice is what a process computes on in mode gpu.
type gpuChoice struct {
	report cuda.Report
	use    []int  // numbers of the report's devices
	shown  string // the memory plans
}

// chooseGPUs finds the GPUs that c asks for, for this process among those of its host. A
// child asks the driver: this process opens it only if that went well.
func (a *app) chooseGPUs(c *engine.Config) error {
	r := a.askGPUs(probeLimit)
	if err := r.Refusal(); err != nil {
		var lines []error
		for _, e := range problemErrors(err) {
			lines = append(lines, fmt.Errorf("--mode=gpu: no GPU can be used: %w", e))
		}
		return a.gpuEnd(c, errors.Join(lines...), tryAgain(&r))
	}
	g := &gpuChoice{report: r}
	numbers, err := engine.GPUNumbers(c.GPU)
	if err != nil {
		return usagef("--gpu=%s: %w", c.GPU, err)
	}
	if g.use, err = a.ownGPUs(&r, numbers); err != nil {
		return err
	}
	if a.seat != nil && a.local == a.mates-1 && len(numbers) > a.mates { // the last of a host
		a.note(c.JSON || c.Progress == "none" || c.Progress == "json", "A graph server computes on one GPU: of --gpu=%s %s idle here. Start a server for each on this host, or train in one process.",
			c.GPU, stay(numbers[a.mates:]))
	}
	for _, n := range g.use {
		if err := g.usable(n, c); err != nil {
			return err
		}
	}
	if l := r.CUBLAS; c.GPUProducts == cuda.CUBLASProducts && l != nil && l.Problem != "" {
		return fmt.Errorf("--gpu-products=%s: %s", c.GPUProducts, l.Problem)
	}
	a.gpu = g
	return nil
}

// ownGPUs picks those of this process: all of a list, or the first that can be used; of a
// run on servers each takes one, in the order in which they are on its host.
func (a *app) ownGPUs(r *cuda.Report, numbers []int) ([]int, error) {
	listed := numbers != nil
	if !listed {
		for i, d := range r.Devices {
			if d.Usable {
				numbers = append(numbers, i)
			}
		}
	}
	alone := a.mates == 0
	switch {
	case alone && listed:
		return numbers, nil
	case alone:
		return numbers[:1], nil
	case a.local < len(numbers):
		return numbers[a.local : a.local+1], nil
	case listed && len(numbers) == 1, !listed && r.Visible != nil:
		// All are to share it; or a launcher shows each of them its own.
		return numbers[a.local%len(numbers):][:1], nil
	}
	return nil, fmt.Errorf("--mode=gpu: this is graph server %d of %d on this host, which has %d GPUs for them (%s); start fewer on it, or name one GPU for all by --gpu",
		a.local+1, a.mates, len(numbers), gpuNames(numbers))
}

func gpuNames(numbers []int) string {
	var names []string
	for _, n := range numbers {
		names = append(names, fmt.Sprintf("cuda:%d", n))
	}
	return strings.Join(names, ", ")
}

// stay is "cuda:1 stays", "cuda:1, cuda:2 stay".
func stay(numbers []int) string {
	if len(numbers) == 1 {
		return gpuNames(numbers) + " stays"
	}
	return gpuNames(numbers) + " stay"
}

// usable refuses a GPU that is not there, cannot be used, or lacks the precision.
func (g *gpuChoice) usable(n int, c *engine.Config) error {
	if n >= len(g.report.Devices) {
		visible := ""
		if v := g.report.Visible; v != nil {
			visible = fmt.Sprintf(" (CUDA_VISIBLE_DEVICES=%s)", *v)
		}
		return fmt.Errorf("--gpu=%s: the driver shows %d GPUs%s, numbered from 0; see dorylus-engine devices", c.GPU, len(g.report.Devices), visible)
	}
	d := &g.report.Devices[n]
	switch {
	case !d.Usable:
		return fmt.Errorf("--gpu=%s: %s (%s) cannot be used: %s", c.GPU, d.Name, d.Model, d.Problem)
	case c.Precision != "fp32" && d.PTX != "sm_80":
		return usagef("--precision=%s: %s (%s, compute capability %s) computes in fp32 only; it takes compute capability 8.0 and a driver of CUDA 11", c.Precision, d.Name, d.Model, d.Capability)
	}
	if _, err := engine.GPUMemoryLimit(c.GPUMemory, d.Free); err != nil {
		return fmt.Errorf("--gpu-memory=%s: %s (%s): %w", c.GPUMemory, d.Name, d.Model, err)
	}
	return nil
}

// visible is what CUDA_VISIBLE_DEVICES leaves, for people; "" if it is not set.
func (g *gpuChoice) visible() string {
	if g.report.Visible == nil {
		return ""
	}
	return "CUDA_VISIBLE_DEVICES=" + *g.report.Visible
}

// emulated says that nobody rents what this process computes on.
func (a *app) emulated() bool { return a.gpu != nil && a.gpu.report.Emulated }

// instance is the type that a run by c is priced as. One that is named has to have the
// GPUs that the run uses on a host.
func (a *app) instance(c *engine.Config, table *cost.Table) (string, error) {
	if c.Mode != "gpu" {
		if c.Instance == "" {
			return cost.DefaultInstance(c.Mode), nil
		}
		return c.Instance, nil
	}
	gpus := max(a.mates, 1)
	if a.gpu != nil {
		gpus = max(gpus, len(a.gpu.use))
	}
	if c.Instance != "" {
		if err := table.HasGPUs(c.Instance, gpus); err != nil {
			return "", usagef("--instance=%s: %w", c.Instance, err)
		}
		return c.Instance, nil
	}
	name := cost.GPUInstance(gpus)
	if name == "" {
		return "", usagef("--instance: no type of server with %d GPUs is known; name one, or none", gpus)
	}
	return name, nil
}

// tryAgain says that a device of a report is taken or faulty: another time or elsewhere
// the run may succeed.
func tryAgain(r *cuda.Report) bool {
	again := func(p *cuda.Problem) bool { return p != nil && (&cuda.Error{Code: p.Code}).TryAgain() }
	return again(r.Problem) || slices.ContainsFunc(r.Devices, func(d cuda.GPU) bool { return again(d.Problem) })
}

// gpuEnd gives what ended a run by c its exit code: a device that is taken or faulty is
// worth another try where there is a checkpoint to go on from.
func (a *app) gpuEnd(c *engine.Config, err error, again bool) error {
	var e *cuda.Error
	if errors.As(err, &e) {
		again = again || e.TryAgain()
	}
	if err == nil || !again {
		return err
	}
	for _, run := range []string{c.OutDir, c.Resume} {
		if run == "" {
			continue
		}
		if _, none := lastCheckpoint(run); none == nil {
			return &codedError{exitTryAgain, fmt.Errorf("%w; go on with --resume=%s", err, filepath.Clean(run))}
		}
	}
	return fmt.Errorf("%w; there is no checkpoint to go on from (--out=RUN --checkpoint-every=N keeps some)", err)
}
