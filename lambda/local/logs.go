package local

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// logs reads what a worker prints. The service writes into the same pipe: a mark
// at a call's end, behind everything the worker had printed by then, so that the
// call's lines are complete when the mark has been read.
type logs struct {
	r, w *os.File
	out  io.Writer
	outM *sync.Mutex // guards out, which all environments share
	done chan struct{}

	mu struct {
		sync.Mutex
		tail  []byte // the current call's last lines, at most logTail bytes
		marks int    // marks read
		reads *sync.Cond
		ended bool // nothing more will be read
	}
}

// mark is a line that no worker prints: log lines are text. It starts a line of
// its own even where the worker left one open.
const mark = "\x00end of call\n"

func newLogs(r, w *os.File, out io.Writer, outM *sync.Mutex) *logs {
	l := &logs{r: r, w: w, out: out, outM: outM, done: make(chan struct{})}
	l.mu.reads = sync.NewCond(&l.mu)
	return l
}

func (l *logs) read() {
	defer close(l.done)
	defer func() {
		l.mu.Lock()
		l.mu.ended = true
		l.mu.reads.Broadcast()
		l.mu.Unlock()
	}()
	in := bufio.NewReaderSize(l.r, 16<<10)
	blank := false // an empty line came last: the worker's, or the one before a mark
	open := false  // the line before has no end yet
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case string(line) == mark:
			if blank = false; open {
				l.add([]byte("\n"))
				open = false
			}
			l.mu.Lock()
			l.mu.marks++
			l.mu.reads.Broadcast()
			l.mu.Unlock()
		case string(line) == "\n" && !blank:
			blank = true
		default:
			if blank {
				l.add([]byte("\n"))
			}
			l.add(line)
			blank, open = false, !bytes.HasSuffix(line, []byte("\n"))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// add takes lines of the worker or of the service.
func (l *logs) add(text []byte) {
	if len(text) == 0 {
		return
	}
	l.mu.Lock()
	l.mu.tail = append(l.mu.tail, text...)
	if over := len(l.mu.tail) - logTail; over > 0 {
		l.mu.tail = append(l.mu.tail[:0], l.mu.tail[over:]...)
	}
	l.mu.Unlock()
	l.outM.Lock()
	defer l.outM.Unlock()
	_, _ = l.out.Write(text) // a log that cannot be written must not end the call
}

// reset forgets the lines of the call before.
func (l *logs) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.tail = l.mu.tail[:0]
}

// sync waits until everything printed up to now has been read.
func (l *logs) sync() {
	l.mu.Lock()
	want, ended := l.mu.marks+1, l.mu.ended
	l.mu.Unlock()
	if ended {
		return
	}
	if _, err := io.WriteString(l.w, "\n"+mark); err != nil {
		return // closed: all is read
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.mu.marks < want && !l.mu.ended {
		l.mu.reads.Wait()
	}
}

// last is the tail of the call's lines.
func (l *logs) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.ToValidUTF8(string(l.mu.tail), "\uFFFD")
}

// close ends the reading once the pipe is empty. A process that left the group
// and still holds the pipe does not keep it open.
func (l *logs) close() {
	_ = l.w.Close()
	_ = l.r.SetReadDeadline(time.Now().Add(time.Second))
	<-l.done
	_ = l.r.Close()
}
