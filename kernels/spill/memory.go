package spill

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"dorylus/kernels"
)

// Base is the least address of a spilled matrix. No device has memory there.
const Base = uintptr(1) << (bits.UintSize - 4)

// gap is what lies between two spilled matrices, so that no view reaches the next.
const gap = 1 << 20

// bounceBytes is the size of the buffer through which rows by number go.
const bounceBytes = 4 << 20

// Config is what a Memory needs of its device.
type Config struct {
	Arena uintptr // address of the device memory for staging, a multiple of 256
	Bytes int64   // its size
	Tile  int     // columns of a tile, a multiple of 4; 0: 32
	// Pin gives zeroed pinned host memory of n values; Unpin takes it back.
	Pin   func(n int) ([]float32, error)
	Unpin func([]float32) error
}

// Memory holds the spilled matrices of a device. Its methods may be called by several
// goroutines.
type Memory struct {
	cfg    Config
	up     atomic.Int64
	down   atomic.Int64
	bounce []float32

	mu     sync.RWMutex
	next   uintptr
	blocks []*block // by address
	mats   map[*kernels.Mat]*block
	free   map[int][][]float32 // pinned memory that nobody uses, by size
	live   int64
	pinned int64
}

// Usage is what a Memory holds and has moved, in bytes.
type Usage struct {
	Arena   int64 // device memory for staging
	Spilled int64 // of the matrices that are held
	Pinned  int64 // host memory that was pinned, also that which waits to be used again
	Up      int64 // staged to the device so far
	Down    int64 // and back
}

// New is an empty Memory over an arena of the device.
func New(c Config) (*Memory, error) {
	if c.Tile == 0 {
		c.Tile = 32
	}
	if c.Tile < 4 || c.Tile%4 != 0 || c.Bytes < MinArena || c.Arena%256 != 0 {
		return nil, fmt.Errorf("spill: an arena of %d bytes at %#x with tiles of %d columns: want at least %d bytes at a multiple of 256 and a multiple of 4 columns", c.Bytes, c.Arena, c.Tile, MinArena)
	}
	m := &Memory{cfg: c, next: Base, mats: map[*kernels.Mat]*block{}, free: map[int][][]float32{}}
	b, err := c.Pin(bounceBytes / 4)
	if err != nil {
		return nil, fmt.Errorf("spill: pin %d bytes of host memory: %w", bounceBytes, err)
	}
	m.bounce, m.pinned = b, bounceBytes
	return m, nil
}

// MinArena is the least that can be staged in.
const MinArena = 64 << 10

// Spilled says whether m is a spilled matrix.
func Spilled(m *kernels.Mat) bool { return m != nil && m.Addr >= Base }

func anySpilled(ms ...*kernels.Mat) bool { return slices.ContainsFunc(ms, Spilled) }

// Alloc is kernels.Device.Alloc in host memory.
func (m *Memory) Alloc(rows, cols int) (*kernels.Mat, error) {
	fail := func(err error) (*kernels.Mat, error) {
		return nil, fmt.Errorf("spill: allocate %d x %d: %w", rows, cols, err)
	}
	stride := kernels.PadCols(cols)
	if rows < 0 || cols < 0 || stride < cols || stride > 0 && rows > (math.MaxInt64>>16)/stride {
		return fail(errors.New("no such size"))
	}
	mat := &kernels.Mat{Rows: rows, Cols: cols, Stride: stride}
	b := &block{rows: rows, cols: cols, stride: stride, tile: m.cfg.Tile}
	n := rows * stride
	if n > 0 {
		host, err := m.take(n)
		if err != nil {
			return fail(err)
		}
		b.host = host
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > 0 {
		b.base = m.next
		mat.Addr = b.base
		m.next += (uintptr(n)*4 + 2*gap - 1) / gap * gap
		m.blocks = append(m.blocks, b)
		m.live += int64(len(b.host)) * 4
	}
	m.mats[mat] = b
	return mat, nil
}

// take is zeroed pinned memory of n values: what was freed, or new.
func (m *Memory) take(n int) ([]float32, error) {
	m.mu.Lock()
	list := m.free[n]
	if len(list) > 0 {
		h := list[len(list)-1]
		m.free[n] = list[:len(list)-1]
		m.mu.Unlock()
		clear(h)
		return h, nil
	}
	m.mu.Unlock()
	h, err := m.cfg.Pin(n)
	if err != nil {
		return nil, fmt.Errorf("pin %d bytes of host memory: %w", int64(n)*4, err)
	}
	m.mu.Lock()
	m.pinned += int64(n) * 4
	m.mu.Unlock()
	return h, nil
}

// Free takes a matrix of Alloc back, the same pointer, and says whether it was one.
func (m *Memory) Free(mat *kernels.Mat) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.mats[mat]
	if b == nil {
		return false
	}
	delete(m.mats, mat)
	if n := len(b.host); n > 0 {
		i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].base >= b.base })
		m.blocks = slices.Delete(m.blocks, i, i+1)
		m.free[n] = append(m.free[n], b.host)
		m.live -= int64(n) * 4
	}
	return true
}

// Held is how many matrices were not freed.
func (m *Memory) Held() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.mats)
}

// Usage is what is held now and was moved so far.
func (m *Memory) Usage() Usage {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return Usage{Arena: m.cfg.Bytes, Spilled: m.live, Pinned: m.pinned, Up: m.up.Load(), Down: m.down.Load()}
}

// Close gives all pinned memory back. Nothing may be held; the arena is its owner's.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.mats); n > 0 {
		return fmt.Errorf("spill: close: %d spilled matrices (%d bytes) were not freed", n, m.live)
	}
	var errs []error
	for _, list := range m.free {
		for _, h := range list {
			errs = append(errs, m.cfg.Unpin(h))
		}
	}
	if m.bounce != nil {
		errs = append(errs, m.cfg.Unpin(m.bounce))
	}
	m.free, m.bounce, m.pinned = map[int][][]float32{}, nil, 0
	return errors.Join(errs...)
}

// find is the block that an address lies in, and how many values behind its start.
func (m *Memory) find(addr uintptr) (*block, int, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].base > addr }) - 1
	if i < 0 {
		return nil, 0, false
	}
	b := m.blocks[i]
	off := int((addr - b.base) / 4)
	return b, off, off < len(b.host)
}
