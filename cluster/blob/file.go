package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func (d *folder) next(n int) ([]fs.DirEntry, error) {
	if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out, nil
}

// file is an open object. It is cut into parts of a fixed size; a part is fetched by one
// request, kept while it is among the last ones used, and those after it are fetched
// ahead where reading is sequential.
type file struct {
	tree   *tree
	key    string
	info   info
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	at     int64 // of Read
	last   int64 // part that was read last
	clock  int64
	parts  map[int64]*part
	closed bool
}

// part is a range of an object, fetched or on its way.
type part struct {
	done chan struct{} // closed when data and err are set
	data []byte
	err  error
	used int64 // clock of its last use
}

func newFile(t *tree, key string, in info) *file {
	f := &file{tree: t, key: key, info: in, last: -1, parts: map[int64]*part{}}
	f.ctx, f.cancel = context.WithCancel(t.ctx)
	return f
}

// Stat describes the object as it was when it was opened.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close ends the requests under way and waits for them.
func (f *file) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.wg.Wait()
	return nil
}

// Read reads on from where the last Read ended.
func (f *file) Read(p []byte) (int, error) {
	f.mu.Lock()
	at := f.at
	f.mu.Unlock()
	if at >= f.info.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := f.some(p, at)
	f.mu.Lock()
	f.at += int64(n)
	f.mu.Unlock()
	return n, err
}

// ReadAt reads len(p) bytes from byte off.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.key, Err: fs.ErrInvalid}
	}
	for n < len(p) {
		if off+int64(n) >= f.info.size {
			return n, io.EOF
		}
		k, err := f.some(p[n:], off+int64(n))
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// some reads at least a byte at off, and no further than its part.
func (f *file) some(p []byte, off int64) (int, error) {
	size := int64(f.tree.opt.PartSize)
	k := off / size
	b, err := f.want(k)
	if err != nil {
		return 0, err
	}
	select {
	case <-b.done:
	case <-f.ctx.Done():
		return 0, context.Cause(f.ctx)
	}
	if b.err != nil {
		return 0, b.err
	}
	return copy(p, b.data[off-k*size:]), nil
}

// want is part k, fetched or on its way, and sees to those after it.
func (f *file) want(k int64) (*part, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, &fs.PathError{Op: "read", Path: f.key, Err: fs.ErrClosed}
	}
	b := f.start(k)
	if k == f.last || k == f.last+1 {
		size := int64(f.tree.opt.PartSize)
		for next := k + 1; next <= k+int64(f.tree.opt.Ahead) && next*size < f.info.size; next++ {
			f.start(next)
		}
	}
	f.last = k
	return b, nil
}

// start fetches part k unless it is there. A part that failed is fetched again. The
// caller holds mu.
func (f *file) start(k int64) *part {
	f.clock++
	if b := f.parts[k]; b != nil {
		select {
		case <-b.done:
			if b.err == nil {
				b.used = f.clock
				return b
			}
		default:
			b.used = f.clock
			return b
		}
	}
	f.evict()
	b := &part{done: make(chan struct{}), used: f.clock}
	f.parts[k] = b
	f.wg.Go(func() {
		b.data, b.err = f.fetch(k)
		close(b.done)
	})
	return b
}

// evict drops the part that was not used for longest, where there are too many. Its
// readers keep it.
func (f *file) evict() {
	if len(f.parts) < f.tree.opt.Ahead+2 {
		return
	}
	oldest := int64(-1)
	for k, b := range f.parts {
		if oldest < 0 || b.used < f.parts[oldest].used {
			oldest = k
		}
	}
	delete(f.parts, oldest)
}

// fetch reads part k. A broken connection is taken up where it broke.
func (f *file) fetch(k int64) ([]byte, error) {
	lo := k * int64(f.tree.opt.PartSize)
	hi := min(lo+int64(f.tree.opt.PartSize), f.info.size)
	data := make([]byte, hi-lo)
	got := 0
	for attempt := 1; ; attempt++ {
		n, err := f.get(data[got:], lo+int64(got))
		got += n
		if err == nil {
			return data, nil
		}
		if attempt >= f.tree.opt.Attempts || !errors.Is(err, errBroken) || f.ctx.Err() != nil {
			return nil, err
		}
	}
}

// errBroken says that a reply ended early, after the SDK had begun to hand it over.
var errBroken = errors.New("the connection broke")

func (f *file) get(p []byte, off int64) (int, error) {
	in := &s3.GetObjectInput{Bucket: &f.tree.bucket, Key: &f.key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1))}
	if f.info.tag != "" {
		in.IfMatch = &f.info.tag
	}
	out, err := f.tree.s3.GetObject(f.ctx, in)
	if err != nil {
		err = pathError("read", f.tree.bucket, f.key, err)
		if errors.Is(err, fs.ErrExist) {
			err = &fs.PathError{Op: "read", Path: Scheme + f.tree.bucket + "/" + f.key, Err: errors.New("it was replaced while it was read; start again")}
		}
		return 0, err
	}
	defer out.Body.Close()
	if tag := aws.ToString(out.ETag); f.info.tag != "" && tag != "" && tag != f.info.tag {
		return 0, &fs.PathError{Op: "read", Path: Scheme + f.tree.bucket + "/" + f.key, Err: errors.New("it was replaced while it was read; start again")}
	}
	n, err := io.ReadFull(out.Body, p)
	if err != nil {
		return n, fmt.Errorf("read %s%s/%s: byte %d: %w: %w", Scheme, f.tree.bucket, f.key, off+int64(n), errBroken, err)
	}
	return n, nil
}
