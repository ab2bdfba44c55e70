package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// blockBytes is the size of the pieces in which text is parsed in parallel: large
// enough to hide the hand-over, small enough to stay in a core's cache. Tests make
// it small.
var blockBytes = 1 << 20

// maxLine is the longest line of a text file.
const maxLine = 1 << 26

// unpacked is the content of a file that may be compressed, as its name says. What a
// compressed file expands to is bounded by its own size.
func (b *blob) unpacked() (io.ReadCloser, error) {
	lower := strings.ToLower(b.name)
	var r io.ReadCloser
	switch {
	case strings.HasSuffix(lower, ".gz"):
		z, err := gzip.NewReader(b.File)
		if err != nil {
			return nil, fmt.Errorf("read %s: byte 0: %w; it is no gzip file, or truncated", b.name, err)
		}
		r = z
	case strings.HasSuffix(lower, ".zst"):
		z, err := zstd.NewReader(b.File, zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("read %s: byte 0: %w; it is no zstd file, or truncated", b.name, err)
		}
		r = z.IOReadCloser()
	default:
		return io.NopCloser(b.File), nil
	}
	return &bounded{ReadCloser: r, name: b.name, size: b.size, left: maxExpanded(b.size)}, nil
}

// bounded ends a decompressor that gives more than its input can honestly hold.
type bounded struct {
	io.ReadCloser
	name       string
	size, left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("its %d bytes expand to more than %d; unpack it first if it is genuine", b.size, maxExpanded(b.size))
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// lineError is a complaint about a line of the block being parsed, counted from 0.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }

func atLine(line int, format string, args ...any) error {
	return &lineError{line, fmt.Errorf(format, args...)}
}

// parsed is what became of one block.
type parsed[T any] struct {
	value T
	lines int
	err   error
}

// parseLines cuts r into blocks of whole lines, parses them on all cores and hands
// the results to take in order. parse also returns the number of lines in its block.
// Errors name the file and the line. firstLine is the number of lines already read.
func parseLines[T any](ctx context.Context, name string, r io.Reader, firstLine int, parse func(b []byte) (T, int, error), take func(T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type job struct {
		block []byte
		done  chan parsed[T]
	}
	workers := runtime.GOMAXPROCS(0)
	jobs := make(chan job, workers)               // blocks waiting for a core
	order := make(chan chan parsed[T], 2*workers) // results in file order
	pool := sync.Pool{New: func() any { return []byte(nil) }}
	var readErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(order)
		defer close(jobs)
		readErr = cutBlocks(r, func() []byte { return pool.Get().([]byte) }, func(block []byte) bool {
			done := make(chan parsed[T], 1)
			select {
			case order <- done:
			case <-ctx.Done():
				return false
			}
			select {
			case jobs <- job{block, done}:
				return true
			case <-ctx.Done():
				done <- parsed[T]{err: ctx.Err()}
				return false
			}
		})
	})
	for range workers {
		wg.Go(func() {
			for j := range jobs {
				v, lines, err := parse(j.block)
				pool.Put(j.block[:0])
				j.done <- parsed[T]{v, lines, err}
			}
		})
	}
	line := firstLine
	var failed error
	for done := range order {
		p := <-done
		if failed != nil {
			continue
		}
		if failed = p.err; failed == nil {
			failed = take(p.value)
		}
		var at *lineError
		if errors.As(failed, &at) {
			failed = fmt.Errorf("read %s: line %d: %w", name, line+at.line+1, at.err)
		}
		if failed != nil {
			cancel()
		}
		line += p.lines
	}
	wg.Wait()
	switch {
	case failed != nil:
		return failed
	case readErr != nil:
		return fmt.Errorf("read %s: line %d: %w", name, line+1, cause(readErr))
	}
	return ctx.Err()
}

// cutBlocks reads r and gives whole lines, about blockBytes at a time, until give
// declines or r ends.
func cutBlocks(r io.Reader, buffer func() []byte, give func([]byte) bool) error {
	var rest []byte
	for {
		block := append(buffer()[:0], rest...)
		rest = nil
		for {
			if cap(block)-len(block) < blockBytes/2 {
				block = append(make([]byte, 0, max(2*len(block), blockBytes+blockBytes/2)), block...)
			}
			n, err := r.Read(block[len(block):cap(block)])
			block = block[:len(block)+n]
			if err == io.EOF {
				if len(block) > 0 {
					give(block)
				}
				return nil
			}
			if err != nil {
				return err
			}
			if len(block) < blockBytes {
				continue
			}
			if i := bytes.LastIndexByte(block, '\n'); i >= 0 {
				rest = append([]byte(nil), block[i+1:]...)
				block = block[:i+1]
				break
			}
			if len(block) > maxLine {
				return fmt.Errorf("a line of more than %d bytes; this is no text file", maxLine)
			}
		}
		if !give(block) {
			return nil
		}
	}
}

// nextLine cuts the first line off b, without its line end.
func nextLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		line, rest = b, nil
	} else {
		line, rest = b[:i], b[i+1:]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, rest
}

// isBlank says whether a line holds nothing but white space.
func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// isComment says whether a line is one: # or % first.
func isComment(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return len(line) > 0 && (line[0] == '#' || line[0] == '%')
}
