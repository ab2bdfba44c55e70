package cuda

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// A pool hands out device memory. What is given back it keeps, by size class, so that
// work that repeats itself allocates nothing; where a limit or the device's memory is
// reached it gives back to the driver what it keeps.
//
// Memory that comes back may be handed out again at once, while kernels still read it:
// all that uses memory of the pool runs on one compute stream, in order. get, put and
// release run on the worker.
type pool struct {
	mu    sync.Mutex
	limit int64
	live  map[address]int64   // blocks that are handed out, and their size
	free  map[int64][]address // blocks that are kept, by their size
	taken int64               // bytes of all blocks
	used  int64               // bytes of those handed out
	peak  int64               // the most that has been
	name  string              // of the device
}

func newPool(name string, limit int64) *pool {
	return &pool{name: name, limit: limit, live: map[address]int64{}, free: map[int64][]address{}}
}

// BlockBytes is what n bytes take of a device's memory: they are rounded up by less than
// 512 bytes, or a 64th.
func BlockBytes(n int64) int64 {
	step := int64(512)
	if b := bits.Len64(uint64(n)); b > 15 {
		step = 1 << (b - 7)
	}
	return (n + step - 1) / step * step
}

// get is a block of at least n bytes, n > 0; what says what it is for. Its content is
// anything.
func (p *pool) get(c context, n int64, what string) (address, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := BlockBytes(n)
	if kept := p.free[size]; len(kept) > 0 {
		a := kept[len(kept)-1]
		p.free[size] = kept[:len(kept)-1]
		p.hand(a, size)
		return a, nil
	}
	if p.taken+size > p.limit {
		if err := p.release(c); err != nil {
			return 0, err
		}
	}
	if p.taken+size > p.limit {
		return 0, p.full(c, n, what, "")
	}
	a, err := c.Alloc(size)
	if codeOf(err) == codeOutOfMemory && len(p.free) > 0 {
		if err := p.release(c); err != nil {
			return 0, err
		}
		a, err = c.Alloc(size)
	}
	if codeOf(err) == codeOutOfMemory {
		return 0, p.full(c, n, what, err.(*Error).Detail)
	}
	if err != nil {
		return 0, fmt.Errorf("allocate %s for %s on %s: %w", bytesText(n), what, p.name, err)
	}
	p.taken += size
	p.hand(a, size)
	return a, nil
}

func (p *pool) hand(a address, size int64) {
	p.live[a] = size
	p.used += size
	p.peak = max(p.peak, p.used)
}

// full is the error of memory that is not there. mu is held.
func (p *pool) full(c context, n int64, what, driver string) error {
	detail := fmt.Sprintf("%s of at most %s are taken", bytesText(p.taken), bytesText(p.limit))
	if free, total, err := c.Memory(); err == nil {
		detail += fmt.Sprintf("; the device has %s free of %s", bytesText(free), bytesText(total))
	}
	if driver != "" {
		detail += "; the driver says: " + driver
	}
	return &Error{Op: fmt.Sprintf("allocate %s for %s on %s", bytesText(n), what, p.name), Code: codeOutOfMemory, Detail: detail}
}

// put takes a block back; 0 is none.
func (p *pool) put(a address) {
	if a == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	size := p.live[a]
	delete(p.live, a)
	p.used -= size
	p.free[size] = append(p.free[size], a)
}

// release gives what is kept back to the driver, when all work that uses it is done. mu
// is held.
func (p *pool) release(c context) error {
	if len(p.free) == 0 {
		return nil
	}
	first := c.Synchronize()
	for size, kept := range p.free {
		for _, a := range kept {
			if err := c.Free(a); err != nil && first == nil {
				first = fmt.Errorf("free %s on %s: %w", bytesText(size), p.name, err)
			}
			p.taken -= size
		}
	}
	clear(p.free)
	return first
}

// close gives all back, what is handed out too.
func (p *pool) close(c context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a, size := range p.live {
		p.free[size] = append(p.free[size], a)
	}
	clear(p.live)
	p.used = 0
	return p.release(c)
}

// bytesText is a number of bytes for people.
func bytesText(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	i := slices.IndexFunc([]int64{1 << 20, 1 << 30, 1 << 40}, func(top int64) bool { return n < top })
	if i < 0 {
		i = 3
	}
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", float64(n)/float64(int64(1)<<(10*(i+1))), units[i])
}
