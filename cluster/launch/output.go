package launch

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Errors of the program are lines that begin with its name. The last of them are kept.
const (
	errorMark   = "dorylus-engine: "
	warningMark = errorMark + "warning: "
	keptWords   = 8
	longestLine = 64 << 10
)

// shared lets several servers write whole lines.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes one piece; there is nobody to tell of an error.
func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.w.Write(b)
	return len(b), nil
}

// wire is the standard error of a server. The leader's goes through as it is, but its
// error messages are held back, since the launcher says them at the end; lines of others
// get a prefix.
type wire struct {
	prefix string // "": the leader's
	to     io.Writer

	mu    sync.Mutex
	part  []byte // a line that has not ended
	words []string
}

func newWire(s *Server, to io.Writer) *wire {
	w := &wire{to: to}
	if !s.leads() {
		w.prefix = fmt.Sprintf("[%s %d] ", s.Role, s.Rank)
	}
	return w
}

// Write takes output as it comes.
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, b...)
	for {
		i := bytes.IndexByte(w.part, '\n')
		switch {
		case i >= 0:
			i++
		case w.prefix == "" && bytes.IndexByte(w.part, '\r') >= 0: // a line that draws itself anew
			i = len(w.part)
		case len(w.part) > longestLine:
			i = len(w.part)
		default:
			return len(b), nil
		}
		w.lineLocked(string(w.part[:i]))
		w.part = append(w.part[:0], w.part[i:]...)
	}
}

func (w *wire) lineLocked(line string) {
	said, isError := strings.CutPrefix(strings.TrimRight(line, "\n"), errorMark)
	isError = isError && !strings.HasPrefix(line, warningMark)
	if isError {
		if w.words = append(w.words, said); len(w.words) > keptWords {
			w.words = w.words[1:]
		}
	}
	switch {
	case w.prefix != "" && !strings.HasSuffix(line, "\n"):
		line += "\n"
	case w.prefix == "" && isError:
		return
	}
	_, _ = io.WriteString(w.to, w.prefix+line)
}

// flush writes what has not ended with a newline.
func (w *wire) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part) > 0 {
		w.lineLocked(string(w.part))
		w.part = nil
	}
}

// last are the last error messages.
func (w *wire) last() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.words...)
}
