package dataset

import (
	"io"
	"io/fs"
)

// progressStep is how many bytes are read between two reports.
const progressStep = 1 << 20

// watched is a file whose reading is reported.
type watched struct {
	fs.File
	name              string
	done, told, total int64
	report            func(file string, done, total int64)
}

// watch reports the reading of b to Options.Progress, if there is one.
func (in *input) watch(b *blob, err error) (*blob, error) {
	if err != nil || in.opt.Progress == nil {
		return b, err
	}
	w := &watched{File: b.File, name: b.name, total: b.size, report: in.opt.Progress}
	if r, ok := b.File.(io.ReaderAt); ok {
		b.File = &watchedAt{w, r}
	} else {
		b.File = w
	}
	return b, nil
}

func (w *watched) count(n int, err error) {
	w.done = min(w.done+int64(n), max(w.total, 0)) // parts may be read twice
	if w.done-w.told >= progressStep || err == io.EOF && w.done > w.told {
		w.told = w.done
		w.report(w.name, w.done, w.total)
	}
}

// Read reads and reports.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.File.Read(p)
	w.count(n, err)
	return n, err
}

// Close closes the file and reports that it is through.
func (w *watched) Close() error {
	if w.told < w.total {
		w.told = w.total
		w.report(w.name, w.total, w.total)
	}
	return w.File.Close()
}

// watchedAt is a watched file with random access.
type watchedAt struct {
	*watched
	at io.ReaderAt
}

// ReadAt reads and reports.
func (w *watchedAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.at.ReadAt(p, off)
	w.count(n, nil)
	return n, err
}
