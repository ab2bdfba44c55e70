//go:build cgo && amd64 && linux

package cpu

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"dorylus/kernels/invariant"

	"golang.org/x/sys/unix"
)

const (
	lineBytes = 64
	hugeBytes = 2 << 20
	// smallest block of the arena, and the largest that shares a chunk with others.
	minBlock, maxBlock = 64, 256 << 10
)

// An arena is memory that Go's collector never looks at. Small blocks, in sizes
// of powers of two, are cut from chunks and kept on free lists; a large one is a
// mapping of its own, on a 2 MiB boundary and in huge pages where the system has
// them, and goes back to the system when it is freed, so that a use after free
// faults. Every block starts on a 64-byte boundary and is zero.
//
// With the detectors on (race, asan) blocks come from the Go heap instead, since
// they watch no other memory.
type arena struct {
	mu struct {
		sync.Mutex
		free     map[int][][]byte // by block size
		chunks   [][]byte         // mappings that small blocks are cut from
		rest     []byte           // of the newest chunk
		large    map[*byte][]byte // first byte of a large block: its mapping
		inUse    int64            // bytes of blocks handed out
		peak     int64            // the most that inUse ever was
		reserved int64            // bytes mapped
	}
}

// alloc is n zeroed bytes.
func (a *arena) alloc(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if n < 0 || n > math.MaxInt64-2*hugeBytes {
		return nil, fmt.Errorf("%d bytes: more than memory can hold", n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, err := a.block(n)
	if err != nil {
		return nil, err
	}
	a.mu.inUse += int64(blockSize(n))
	a.mu.peak = max(a.mu.peak, a.mu.inUse)
	return b, nil
}

func (a *arena) block(n int) ([]byte, error) {
	if watched {
		return heapBlock(n), nil
	}
	size := blockSize(n)
	if size > maxBlock {
		return a.mapLargeLocked(n, size)
	}
	if list := a.mu.free[size]; len(list) > 0 {
		b := list[len(list)-1]
		a.mu.free[size] = list[:len(list)-1]
		clear(b)
		return b[:n:n], nil
	}
	if len(a.mu.rest) < size {
		chunk, err := a.mapLocked(hugeBytes)
		if err != nil {
			return nil, err
		}
		a.mu.chunks = append(a.mu.chunks, chunk)
		a.mu.rest = chunk
	}
	b := a.mu.rest[:size:size]
	a.mu.rest = a.mu.rest[size:]
	return b[:n:n], nil
}

// blockSize is what n bytes take: a power of two, or whole pages.
func blockSize(n int) int {
	if n > maxBlock {
		const page = 4096
		return (n + page - 1) / page * page
	}
	size := minBlock
	for size < n {
		size *= 2
	}
	return size
}

// mapLargeLocked maps size bytes so that they start on a 2 MiB boundary if they
// fill a huge page.
func (a *arena) mapLargeLocked(n, size int) ([]byte, error) {
	spare := 0
	if size >= hugeBytes {
		spare = hugeBytes
	}
	m, err := a.mapLocked(size + spare)
	if err != nil {
		return nil, err
	}
	skip := 0
	if past := int(uintptr(unsafe.Pointer(&m[0])) % hugeBytes); spare > 0 && past > 0 {
		skip = hugeBytes - past
	}
	b := m[skip : skip+n : skip+n]
	if a.mu.large == nil {
		a.mu.large = make(map[*byte][]byte)
	}
	a.mu.large[&b[0]] = m
	return b, nil
}

func (a *arena) mapLocked(n int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	if n >= hugeBytes {
		// Advice only: a system without huge pages refuses, and is slower.
		_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
	}
	a.mu.reserved += int64(n)
	return m, nil
}

// release gives back a block of alloc.
func (a *arena) release(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if invariant.Enabled {
		for i := range b {
			b[i] = 0xff // as float32: NaN
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	size := blockSize(len(b))
	a.mu.inUse -= int64(size)
	if watched {
		return nil
	}
	if m, ok := a.mu.large[&b[0]]; ok {
		delete(a.mu.large, &b[0])
		a.mu.reserved -= int64(len(m))
		return unix.Munmap(m)
	}
	if a.mu.free == nil {
		a.mu.free = make(map[int][][]byte)
	}
	a.mu.free[size] = append(a.mu.free[size], unsafe.Slice(&b[0], size))
	return nil
}

// close unmaps the chunks. The caller has reported what is still held; large
// blocks that leaked stay mapped, so that what holds them does not crash.
func (a *arena) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.inUse > 0 {
		return nil
	}
	chunks := a.mu.chunks
	a.mu.chunks, a.mu.rest, a.mu.free = nil, nil, nil
	for _, m := range chunks {
		a.mu.reserved -= int64(len(m))
		if err := unix.Munmap(m); err != nil {
			return fmt.Errorf("unmap %d bytes: %w", len(m), err)
		}
	}
	return nil
}

// heapBlock is n zeroed bytes of the Go heap from a 64-byte boundary on.
func heapBlock(n int) []byte {
	buf := make([]float32, (n+3)/4+lineBytes/4)
	p := unsafe.Pointer(unsafe.SliceData(buf))
	skip := int(-uintptr(p) % lineBytes)
	return unsafe.Slice((*byte)(unsafe.Add(p, skip)), n)
}
