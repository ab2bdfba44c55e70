package cuda

import (
	"fmt"
	"sync"
)

// fakeDriver is a driver without memory or kernels: it counts contexts, and fails as it
// is told.
type fakeDriver struct {
	driver // what a test needs beyond the methods below panics
	info   driverInfo
	gpus   []deviceInfo
	fail   map[string]int // method to code
	loads  map[string]bool

	mu   sync.Mutex
	held int // contexts that are retained
}

func (d *fakeDriver) err(method string) error {
	if code := d.fail[method]; code != 0 {
		return &Error{Op: method, Code: code}
	}
	return nil
}

func (d *fakeDriver) Info() driverInfo          { return d.info }
func (d *fakeDriver) Devices() (int, error)     { return len(d.gpus), d.err("Devices") }
func (d *fakeDriver) Loads(library string) bool { return d.loads[library] }
func (d *fakeDriver) CUBLAS(files []string) (library, error) {
	for _, f := range files {
		if d.loads[f] {
			return &fakeLibrary{d: d, file: f}, nil
		}
	}
	return nil, fmt.Errorf("searched %v", files)
}
func (d *fakeDriver) Device(i int) (deviceInfo, error) {
	return d.gpus[i], d.err(fmt.Sprint("Device", i))
}

func (d *fakeDriver) Retain(i int) (context, error) {
	if err := d.err(fmt.Sprint("Retain", i)); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held++
	return &fakeContext{d: d, gpu: i}, nil
}

type fakeContext struct {
	context
	d   *fakeDriver
	gpu int
}

func (c *fakeContext) SetCurrent() error { return c.d.err("SetCurrent") }

func (c *fakeContext) Release() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.held--
	return c.d.err("Release")
}

func (c *fakeContext) Memory() (free, total int64, err error) {
	b := c.d.gpus[c.gpu].Bytes
	return b / 2, b, c.d.err("Memory")
}

// fakeLibrary is a cuBLAS that cannot make products.
type fakeLibrary struct {
	library
	d    *fakeDriver
	file string
}

func (l *fakeLibrary) File() string    { return l.file }
func (l *fakeLibrary) Version() string { return "1.2.3" }
func (l *fakeLibrary) Emulated() bool  { return l.d.loads["emulated"] }
