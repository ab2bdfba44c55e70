package cuda

import (
	"errors"
	"unsafe"
)

// Staging is three chunks, each of pinned host memory and as much device memory. Rows
// for the device are packed into pinned memory, copied to the chunk's device memory on
// a copy stream, and put in their places by a kernel on the compute stream, which waits
// for the copy; rows from the device go the other way. So copies run beside kernels,
// and nothing but a kernel in the compute stream's order writes to a matrix.
const (
	chunkBytes = 4 << 20
	chunkCount = 3
	pieceAlign = 256
)

// A chunk is handed out in pieces. When it is full, a mark is set on every stream; it
// begins anew when all marks are reached.
type chunk struct {
	host  unsafe.Pointer
	dev   address
	used  int64
	marks [3]event // of the compute stream, the one up, the one down
	left  bool     // marks are set
	outs  []func() // copies of what came from the device to where the host wants it
}

// A piece of a chunk.
type piece struct {
	host []byte
	dev  address
	in   *chunk
}

// staging belongs to the worker.
type staging struct {
	drv    driver
	bytes  int64 // of a chunk
	chunks []*chunk
	at     int // the chunk in use
}

// newStaging pins memory. What it gives back must be closed also after an error.
func newStaging(drv driver, c context, p *pool, bytes int64) (*staging, error) {
	s := &staging{drv: drv, bytes: bytes}
	for range chunkCount {
		k := &chunk{}
		s.chunks = append(s.chunks, k)
		var err error
		if k.host, err = drv.HostAlloc(int(bytes)); err != nil {
			k.host = nil
			return s, err
		}
		if k.dev, err = p.get(c, bytes, "staging"); err != nil {
			return s, err
		}
		for i := range k.marks {
			if k.marks[i], err = c.NewEvent(false); err != nil {
				k.marks[i] = nil
				return s, err
			}
		}
	}
	return s, nil
}

// piece is n bytes, at most a chunk's.
func (s *staging) piece(x *runner, n int64) (piece, error) {
	k := s.chunks[s.at]
	if k.used+n > s.bytes {
		if err := s.leave(x, k); err != nil {
			return piece{}, err
		}
		s.at = (s.at + 1) % len(s.chunks)
		k = s.chunks[s.at]
		if err := k.again(); err != nil {
			return piece{}, err
		}
	}
	at := k.used
	k.used += (n + pieceAlign - 1) / pieceAlign * pieceAlign
	return piece{unsafe.Slice((*byte)(unsafe.Add(k.host, at)), n), k.dev + address(at), k}, nil
}

func (s *staging) leave(x *runner, k *chunk) error {
	for i, t := range []stream{x.compute, x.up, x.down} {
		if err := k.marks[i].Record(t); err != nil {
			return err
		}
	}
	k.left = true
	return nil
}

// again waits for the work that uses a chunk and empties it.
func (k *chunk) again() error {
	if k.left {
		for _, e := range k.marks {
			if err := e.Synchronize(); err != nil {
				return err
			}
		}
	}
	k.deliver()
	return nil
}

// deliver hands on what has come from the device.
func (k *chunk) deliver() {
	for _, f := range k.outs {
		f()
	}
	k.forget()
}

func (k *chunk) forget() { k.outs, k.used, k.left = nil, 0, false }

// end empties all chunks: all streams are done, or, with an error, are never going to be.
func (s *staging) end(err error) {
	for i := range s.chunks {
		k := s.chunks[(s.at+1+i)%len(s.chunks)] // oldest first
		if err != nil {
			k.forget()
		} else {
			k.deliver()
		}
	}
}

func (s *staging) pinned() int64 { return s.bytes * int64(len(s.chunks)) }

func (s *staging) close() error {
	var errs []error
	for _, k := range s.chunks {
		for i, e := range k.marks {
			if e != nil {
				errs = append(errs, e.Destroy())
				k.marks[i] = nil
			}
		}
		if k.host != nil {
			errs = append(errs, s.drv.HostFree(k.host))
			k.host = nil
		}
	}
	return errors.Join(errs...)
}
