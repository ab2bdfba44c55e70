package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dorylus/engine"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/devices"
	"dorylus/kernels/spill"
)

// outOfMemory is the driver's code of a device whose memory is used up.
const outOfMemory = 2

// gpuPrefix begins the names of GPUs.
const gpuPrefix = "cuda:"

// registerGPUs lets devices.Open open GPUs by name.
func (a *app) registerGPUs() {
	devices.Register(gpuPrefix, func(name string) (kernels.Device, error) {
		return a.openGPU(name, "")
	}, func() []devices.Info {
		var list []devices.Info
		r := a.askGPUs(probeLimit)
		for _, l := range gpuLines(r)[1:] {
			list = append(list, devices.Info{Name: l.Name, OK: l.Usable, Why: l.Why, Detail: l.Detail})
		}
		if r.Problem != nil {
			list = append(list, devices.Info{Name: "cuda:0", Why: r.Problem.String()})
		}
		return list
	})
}

// openGPU opens the GPU of a name, with products made as cuda.Options.Products says.
func (a *app) openGPU(name, products string) (kernels.Device, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, gpuPrefix))
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q is no number of a GPU, want cuda:0", strings.TrimPrefix(name, gpuPrefix))
	}
	o := a.gpuFiles(n)
	o.Products = products
	dev, err := cuda.Open(o)
	if err != nil {
		return nil, err // not a nil *cuda.Device
	}
	return dev, nil
}

// gpuSet is the GPUs of a run, open.
type gpuSet struct {
	devices   []*cuda.Device
	precision string
	plans     []*spill.Plan // by device
}

// openGPUs opens those that were chosen.
func (a *app) openGPUs(c *engine.Config) (_ *gpuSet, err error) {
	s := &gpuSet{precision: c.Precision}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for _, n := range a.gpu.use {
		limit, err := engine.GPUMemoryLimit(c.GPUMemory, a.gpu.report.Devices[n].Free)
		if err != nil {
			return s, fmt.Errorf("--gpu-memory=%s: %w", c.GPUMemory, err)
		}
		o := a.gpuFiles(n)
		o.Memory, o.Precision, o.Products = limit, c.Precision, c.GPUProducts
		o.Announce = func(text string) { a.note(c.JSON || c.Progress == "none", "%s", text) }
		dev, err := cuda.Open(o)
		if err != nil {
			var e *cuda.Error
			if errors.As(err, &e) && e.Code == outOfMemory {
				return s, fmt.Errorf("--mode=gpu: --gpu-memory=%s allows %d bytes of cuda:%d, too few to open it, or others have taken what was free: %w", c.GPUMemory, limit, n, err)
			}
			return s, fmt.Errorf("--mode=gpu: %w", err)
		}
		s.devices = append(s.devices, dev)
	}
	return s, nil
}

// keepTo has each GPU of a run hold what its plan says.
func (s *gpuSet) keepTo(plans []*spill.Plan) error {
	s.plans = plans
	for i, d := range s.devices {
		if err := d.Apply(plans[i]); err != nil {
			return err
		}
	}
	return nil
}

// all are the devices as the engine knows them.
func (s *gpuSet) all() []kernels.Device {
	list := make([]kernels.Device, len(s.devices))
	for i, d := range s.devices {
		list[i] = d
	}
	return list
}

func (s *gpuSet) close() error {
	var errs []error
	for _, d := range s.devices {
		errs = append(errs, d.Close())
	}
	s.devices = nil
	return errors.Join(errs...)
}

// kernels is what servers must have alike, since the bits of a run depend on it.
func (s *gpuSet) kernels() string { return s.devices[0].Describe() + ", " + s.precision }

// used is what the devices say of themselves, with what they have taken if peak is set.
func (s *gpuSet) used(peak bool) engine.GPUUsed {
	u := engine.GPUUsed{Precision: s.precision}
	if len(s.devices) > 0 {
		u.Products = s.devices[0].Products()
	}
	for i, d := range s.devices {
		m := d.Memory()
		g := engine.GPU{Name: d.Name(), What: d.Describe(), Limit: m.Limit, Total: m.Total, Spilled: m.Spilled}
		if s.plans != nil {
			g.Plan = s.plans[i].Verdict.String()
		}
		if peak {
			g.Peak = m.Peak
		}
		u.GPUs, u.Emulated = append(u.GPUs, g), u.Emulated || d.Emulated()
	}
	return u
}

// gpuTeller adds to a run's events what its GPUs are and what they have taken.
type gpuTeller struct {
	engine.Listener
	set   *gpuSet
	first engine.GPUUsed
}

func (t *gpuTeller) Event(e engine.Event) {
	switch e.(type) {
	case engine.RunStart:
		t.Listener.Event(e)
		t.first = t.set.used(false)
		t.Listener.Event(t.first)
		return
	case engine.RunDone:
		last := t.set.used(true)
		for i := range t.first.GPUs { // one that is lost does not know any more
			last.GPUs[i].Total = t.first.GPUs[i].Total
		}
		t.Listener.Event(last)
	}
	t.Listener.Event(e)
}

// mover warns where a run goes on with other kernels than it was on: its bits are then
// those of no run in one go.
type mover struct {
	engine.Listener
	was string
}

// kernelsOf is what a run computes with, as far as bits are concerned.
func kernelsOf(device, precision string, gpus []engine.GPU) string {
	if len(gpus) == 0 {
		return device
	}
	return gpus[0].What + ", " + precision
}

func (m *mover) Event(e engine.Event) {
	m.Listener.Event(e)
	switch e := e.(type) {
	case engine.RunStart:
		if e.Mode != "gpu" {
			m.on(kernelsOf(e.Device, "", nil))
		}
	case engine.GPUUsed:
		m.on(kernelsOf("", e.Precision, e.GPUs))
	}
}

func (m *mover) on(now string) {
	if m.was != "" && m.was != now {
		m.Listener.Event(engine.Warned{Message: fmt.Sprintf("the run was on %s and goes on on %s: it agrees with a run on either within rounding, not to the bit", m.was, now)})
	}
	m.was = ""
}
