//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"

	kernelcode "dorylus/csrc/cuda"
	"dorylus/csrc/cudashim"
)

// Built says whether this program has GPU support.
const Built = true

// openDriver opens the driver at path, "" for the one of this machine.
func openDriver(path string) (driver, error) {
	if err := cudashim.Open(path); err != nil {
		var failed *cudashim.Error
		if errors.As(err, &failed) {
			return nil, &Error{Op: failed.Op, Code: failed.Code, Detail: failed.Detail}
		}
		return nil, err
	}
	return cuDriver{}, nil
}

// image is the kernels for a target.
func image(target string) []byte {
	if target == "sm_80" {
		return []byte(kernelcode.PTX80)
	}
	return []byte(kernelcode.PTX70)
}

// kernelHash is that of the sources of these kernels.
func kernelHash() string { return kernelcode.Hash() }

// wrap turns cu's error, an integer of a type of its own, into ours.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.CanInt() {
		return failed(op, int(v.Int()))
	}
	return &Error{Op: op, Code: 999, Detail: err.Error()}
}

// failed is the error of a code, nil for 0.
func failed(op string, code int) error {
	if code == 0 {
		return nil
	}
	_, text := cudashim.Describe(code)
	return &Error{Op: op, Code: code, Detail: text}
}

type cuDriver struct{}

func (cuDriver) Info() driverInfo {
	s := cudashim.State()
	return driverInfo{Library: s.Library, Version: s.Version, Emulated: s.Emulated, Missing: s.Missing}
}

func (cuDriver) Devices() (int, error) {
	n, err := cu.NumDevices()
	return n, wrap("count the devices", err)
}

func (cuDriver) Device(i int) (info deviceInfo, err error) {
	dev, err := cu.GetDevice(i)
	if err == nil {
		info.Name, err = dev.Name()
	}
	if err == nil {
		info.Bytes, err = dev.TotalMem()
	}
	for _, a := range []struct {
		attribute cu.DeviceAttribute
		value     *int
	}{{75, &info.Major}, {76, &info.Minor}, {38, &info.L2}, {16, &info.Multiprocessor}, {97, &info.Shared}} {
		if err == nil {
			*a.value, err = dev.Attribute(a.attribute)
		}
	}
	return info, wrap("ask the device", err)
}

func (cuDriver) Retain(i int) (context, error) {
	dev, err := cu.GetDevice(i)
	if err != nil {
		return nil, wrap("find the device", err)
	}
	ctx, err := dev.RetainPrimaryCtx()
	return cuContext{dev, ctx}, wrap("make the context", err)
}

func (cuDriver) Reaches(i, other int) (bool, error) {
	const op = "ask whether devices reach each other"
	dev, err := cu.GetDevice(i)
	if err != nil {
		return false, wrap(op, err)
	}
	peer, err := cu.GetDevice(other)
	if err != nil {
		return false, wrap(op, err)
	}
	can, err := dev.CanAccessPeer(peer)
	return can != 0, wrap(op, err)
}

func (cuDriver) Loads(library string) bool { return cudashim.Loads(library) }

func (cuDriver) HostAlloc(n int) (unsafe.Pointer, error) {
	p, code := cudashim.HostAlloc(n)
	return p, failed("pin host memory", code)
}

func (cuDriver) HostFree(p unsafe.Pointer) error {
	return wrap("free pinned memory", cu.MemFreeHost(p))
}

type cuContext struct {
	dev cu.Device
	ctx cu.CUContext
}

func (c cuContext) SetCurrent() error {
	return wrap("make the context current", cu.SetCurrentContext(c.ctx))
}
func (c cuContext) Release() error     { return wrap("release the context", c.dev.ReleasePrimaryCtx()) }
func (c cuContext) Synchronize() error { return wrap("wait for the device", cu.Synchronize()) }

func (c cuContext) Memory() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, wrap("ask for free memory", err)
}

func (c cuContext) Alloc(bytes int64) (address, error) {
	p, err := cu.MemAlloc(bytes)
	return address(p), wrap("allocate device memory", err)
}

func (c cuContext) Free(a address) error {
	return wrap("free device memory", cu.MemFree(cu.DevicePtr(a)))
}

func (c cuContext) Upload(to address, host []byte) error {
	return wrap("copy to the device", cu.MemcpyHtoD(cu.DevicePtr(to), unsafe.Pointer(unsafe.SliceData(host)), int64(len(host))))
}

func (c cuContext) Download(host []byte, from address) error {
	return wrap("copy from the device", cu.MemcpyDtoH(unsafe.Pointer(unsafe.SliceData(host)), cu.DevicePtr(from), int64(len(host))))
}

func (c cuContext) LoadModule(image []byte) (module, error) {
	m, log, code := cudashim.LoadModule(image)
	if code != 0 {
		err := failed("load the kernels", code).(*Error)
		if log != "" {
			err.Detail = log
		}
		return nil, err
	}
	return cuModule{*(*cu.Module)(unsafe.Pointer(&m))}, nil // a struct of the handle alone
}

func (c cuContext) NewStream() (stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	return &cuStream{s}, wrap("make a stream", err)
}

func (c cuContext) NewEvent(timed bool) (event, error) {
	flags := cu.DisableTiming
	if timed {
		flags = cu.DefaultEvent
	}
	e, err := cu.MakeEvent(flags)
	return &cuEvent{e}, wrap("make an event", err)
}

func (c cuContext) Reach(other context) error {
	err := wrap("reach another device's memory", other.(cuContext).ctx.EnablePeerAccess(0))
	var e *Error
	if errors.As(err, &e) && e.Code == codePeerEnabled {
		return nil
	}
	return err
}

type cuModule struct{ cu.Module }

func (m cuModule) Function(name string) (function, error) {
	f, err := m.Module.Function(name)
	return cuFunction{f, name}, wrap("find kernel "+name, err)
}

func (m cuModule) Unload() error { return wrap("unload the kernels", m.Module.Unload()) }

type cuFunction struct {
	fn   cu.Function
	name string
}

func (f cuFunction) AllowShared(bytes int) error {
	return failed("allow kernel "+f.name+" shared memory", cudashim.AllowShared(*(*uintptr)(unsafe.Pointer(&f.fn)), bytes))
}

func (f cuFunction) Launch(s stream, blocks, threads, shared int, args []uint64) error {
	boxes := make([]unsafe.Pointer, len(args))
	for i := range args {
		boxes[i] = unsafe.Pointer(&args[i])
	}
	return wrap("launch kernel "+f.name, f.fn.Launch(blocks, 1, 1, threads, 1, 1, shared, s.(*cuStream).s, boxes))
}
