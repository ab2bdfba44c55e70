package cuda

import (
	"fmt"
	"unsafe"
)

// What follows gives the fake driver memory, streams that do their work at once, and the
// kernels that move: enough to open a device on it.

// deviceDriver is a fakeDriver with memory. A call that is made for the failAt-th time
// ends with code 1.
type deviceDriver struct {
	fakeDriver
	failing string
	failAt  int
	calls   map[string]int
	live    map[string]int // what was made and not given back
	next    address
	memory  map[address][]byte
	images  []string // of LoadModule
	loading []int    // the codes of its first calls
}

func newDeviceDriver(failing string, failAt int) *deviceDriver {
	d := &deviceDriver{failing: failing, failAt: failAt, calls: map[string]int{}, live: map[string]int{}, next: 1 << 20, memory: map[address][]byte{}}
	d.info.Version = 12080
	d.gpus = []deviceInfo{h200}
	return d
}

func (d *deviceDriver) call(name string) error {
	if d.calls[name]++; name == d.failing && d.calls[name] == d.failAt {
		return &Error{Op: name, Code: 1}
	}
	return nil
}

// made is call for what makes something, gone for what gives it back.
func (d *deviceDriver) made(call, what string) error {
	if err := d.call(call); err != nil {
		return err
	}
	d.live[what]++
	return nil
}

func (d *deviceDriver) gone(call, what string) error {
	d.live[what]--
	return d.call(call)
}

func (d *deviceDriver) Retain(i int) (context, error) {
	c, err := d.fakeDriver.Retain(i)
	return &deviceContext{c.(*fakeContext), d}, err
}

func (d *deviceDriver) HostAlloc(n int) (unsafe.Pointer, error) {
	if err := d.made("HostAlloc", "pinned"); err != nil {
		return nil, err
	}
	return unsafe.Pointer(unsafe.SliceData(make([]byte, n))), nil
}
func (d *deviceDriver) HostFree(unsafe.Pointer) error { return d.gone("HostFree", "pinned") }

// at is n bytes of device memory.
func (d *deviceDriver) at(a address, n int64) []byte {
	for base, m := range d.memory {
		if a >= base && a+address(n) <= base+address(len(m)) {
			return m[a-base:][:n]
		}
	}
	panic(fmt.Sprintf("%d bytes at %#x are no device memory", n, a))
}

type deviceContext struct {
	*fakeContext
	d *deviceDriver
}

func (c *deviceContext) Memory() (free, total int64, err error) {
	return c.d.gpus[0].Bytes / 2, c.d.gpus[0].Bytes, c.d.call("Memory")
}
func (c *deviceContext) Synchronize() error { return c.d.call("Synchronize") }
func (c *deviceContext) Alloc(n int64) (address, error) {
	if err := c.d.made("Alloc", "memory"); err != nil {
		return 0, err
	}
	a := c.d.next
	c.d.next += address(n) + 4096
	c.d.memory[a] = make([]byte, n)
	return a, nil
}
func (c *deviceContext) Free(a address) error {
	delete(c.d.memory, a)
	return c.d.gone("Free", "memory")
}
func (c *deviceContext) LoadModule(image []byte) (module, error) {
	n := len(c.d.images)
	c.d.images = append(c.d.images, string(image))
	if n < len(c.d.loading) && c.d.loading[n] != 0 {
		return nil, &Error{Op: "LoadModule", Code: c.d.loading[n]}
	}
	return fakeModule{c.d}, c.d.made("LoadModule", "modules")
}
func (c *deviceContext) NewStream() (stream, error) {
	return &fakeStream{d: c.d}, c.d.made("NewStream", "streams")
}
func (c *deviceContext) NewEvent(bool) (event, error) {
	return &fakeEvent{d: c.d}, c.d.made("NewEvent", "events")
}

type fakeModule struct{ d *deviceDriver }

func (m fakeModule) Unload() error { return m.d.gone("Unload", "modules") }
func (m fakeModule) Function(name string) (function, error) {
	return fakeFunction{name: name, d: m.d}, m.d.call("Function")
}

type fakeFunction struct {
	function
	name string
	d    *deviceDriver
}

// Launch knows dk_copy and dk_zero.
func (f fakeFunction) Launch(_ stream, _, _, _ int, args []uint64) error {
	if err := f.d.call("Launch"); err != nil {
		return err
	}
	from := 2
	if f.name == "dk_copy" {
		from = 4
	} else if f.name != "dk_zero" {
		panic("the fake device has no " + f.name)
	}
	rows, cols := int64(args[from]), int64(args[from+1])
	for r := range rows {
		row := f.d.at(address(args[0])+address(4*r*int64(args[1])), 4*cols)
		clear(row)
		if f.name == "dk_copy" {
			copy(row, f.d.at(address(args[2])+address(4*r*int64(args[3])), 4*cols))
		}
	}
	return nil
}

type fakeStream struct {
	stream
	d *deviceDriver
}

func (s *fakeStream) Upload(to address, host unsafe.Pointer, n int64) error {
	copy(s.d.at(to, n), unsafe.Slice((*byte)(host), n))
	return s.d.call("Upload")
}
func (s *fakeStream) Download(host unsafe.Pointer, from address, n int64) error {
	copy(unsafe.Slice((*byte)(host), n), s.d.at(from, n))
	return s.d.call("Download")
}
func (s *fakeStream) Fill(to address, value byte, n int64) error {
	for i := range s.d.at(to, n) {
		s.d.at(to, n)[i] = value
	}
	return s.d.call("Fill")
}
func (s *fakeStream) Wait(event) error   { return s.d.call("StreamWait") }
func (s *fakeStream) Synchronize() error { return s.d.call("StreamSynchronize") }
func (s *fakeStream) Destroy() error     { return s.d.gone("DestroyStream", "streams") }

type fakeEvent struct {
	event
	d *deviceDriver
}

func (e *fakeEvent) Record(stream) error { return e.d.call("Record") }
func (e *fakeEvent) Synchronize() error  { return e.d.call("EventSynchronize") }
func (e *fakeEvent) Destroy() error      { return e.d.gone("DestroyEvent", "events") }
