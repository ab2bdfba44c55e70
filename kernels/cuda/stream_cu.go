//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"unsafe"

	"gorgonia.org/cu"
)

// ready turns the error of a query into whether the work is done.
func ready(err error) (bool, error) {
	var e *Error
	if errors.As(err, &e) && e.Code == codeNotReady {
		return false, nil
	}
	return err == nil, err
}

type cuStream struct{ s cu.Stream }

func (s *cuStream) Upload(to address, host unsafe.Pointer, bytes int64) error {
	return wrap("queue a copy to the device", cu.MemcpyHtoDAsync(cu.DevicePtr(to), host, bytes, s.s))
}

func (s *cuStream) Download(host unsafe.Pointer, from address, bytes int64) error {
	return wrap("queue a copy from the device", cu.MemcpyDtoHAsync(host, cu.DevicePtr(from), bytes, s.s))
}

func (s *cuStream) Copy(to, from address, bytes int64) error {
	return wrap("queue a copy on the device", cu.MemcpyDtoDAsync(cu.DevicePtr(to), cu.DevicePtr(from), bytes, s.s))
}

func (s *cuStream) CopyPeer(to address, here context, from address, there context, bytes int64) error {
	return wrap("queue a copy between devices", cu.MemcpyPeerAsync(cu.DevicePtr(to), here.(cuContext).ctx, cu.DevicePtr(from), there.(cuContext).ctx, bytes, s.s))
}

func (s *cuStream) Fill(to address, value byte, bytes int64) error {
	return wrap("queue a fill", cu.MemsetD8Async(cu.DevicePtr(to), value, bytes, s.s))
}

func (s *cuStream) Wait(e event) error  { return wrap("let a stream wait", s.s.Wait(e.(*cuEvent).e, 0)) }
func (s *cuStream) Done() (bool, error) { return ready(wrap("ask a stream", s.s.Query())) }
func (s *cuStream) Synchronize() error  { return wrap("wait for a stream", s.s.Synchronize()) }
func (s *cuStream) Destroy() error      { return wrap("destroy a stream", s.s.Destroy()) }

type cuEvent struct{ e cu.Event }

func (e *cuEvent) Record(s stream) error { return wrap("record an event", e.e.Record(s.(*cuStream).s)) }
func (e *cuEvent) Done() (bool, error)   { return ready(wrap("ask an event", e.e.Query())) }
func (e *cuEvent) Synchronize() error    { return wrap("wait for an event", e.e.Synchronize()) }
func (e *cuEvent) Destroy() error        { return wrap("destroy an event", cu.DestroyEvent(&e.e)) }

func (e *cuEvent) Since(start event) (float64, error) {
	ms, err := start.(*cuEvent).e.Elapsed(e.e)
	return ms, wrap("measure between events", err)
}
