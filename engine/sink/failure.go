package sink

import (
	"errors"
	"fmt"
	"io/fs"
)

// failure keeps the first error of a sink and reports it once.
type failure struct {
	what string // "write RUN/events.jsonl"
	warn func(error)
	err  error
}

func newFailure(what string, warn func(error)) *failure {
	return &failure{what: what, warn: warn}
}

func (f *failure) failed() bool { return f.err != nil }

// note records err, unless it is nil or one came before.
func (f *failure) note(err error) {
	if err == nil || f.err != nil {
		return
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // its path is in f.what
	}
	f.err = fmt.Errorf("%s: %w; training goes on, this file is incomplete", f.what, err)
	if f.warn != nil {
		f.warn(f.err)
	}
}
