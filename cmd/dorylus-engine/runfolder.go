package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dorylus/engine"
	"dorylus/engine/sink"
)

// Files of a RUN folder.
const (
	configFile  = "config.yaml"
	eventsFile  = "events.jsonl"
	summaryFile = "summary.json"
	traceFile   = "trace.json"
)

// runFolder is the folder that --out names; path "" is none.
type runFolder struct {
	path string
	made bool // by this process
}

// openRunFolder makes the folder of a new run, or takes that of a resumed one,
// before any work is done. A folder that holds another run is refused.
func openRunFolder(c *engine.Config) (*runFolder, error) {
	f := &runFolder{path: c.OutDir}
	if f.path == "" {
		return f, nil
	}
	if f.path != c.Resume {
		for _, name := range []string{configFile, eventsFile, summaryFile} {
			if _, err := os.Stat(filepath.Join(f.path, name)); err == nil {
				return nil, fmt.Errorf("--out=%s holds a run already (%s); choose another folder, or go on with that run by --resume=%s", f.path, name, f.path)
			}
		}
	}
	_, before := os.Stat(f.path)
	if err := os.MkdirAll(f.path, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder --out=%s: %w; choose one that can be written to", f.path, bare(err))
	}
	f.made = before != nil
	probe, err := os.CreateTemp(f.path, ".probe-")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		f.discard()
		return nil, fmt.Errorf("write to the folder --out=%s: %w; choose one that can be written to", f.path, bare(err))
	}
	return f, nil
}

// discard removes the folder again if this process made it and nothing is in it.
func (f *runFolder) discard() {
	if f.made {
		_ = os.Remove(f.path) // refused, rightly, when it is not empty
	}
}

// sub is the folder of run number run of several: RUN/run0.
func (f *runFolder) sub(run, runs int) string {
	if f.path == "" || runs == 1 {
		return f.path
	}
	return filepath.Join(f.path, fmt.Sprintf("run%d", run))
}

// sinks are the files that one run writes.
type sinks struct {
	engine.Listeners
	open []io.Closer
}

// openSinks opens the files of a run in dir, "" for none. warn is told of those
// that cannot be written any more.
func openSinks(dir string, c *engine.Config, warn func(error)) (*sinks, error) {
	s := &sinks{}
	if dir == "" {
		return s, nil
	}
	err := s.openIn(dir, c, warn)
	if err != nil {
		err = errors.Join(fmt.Errorf("start a run in %s: %w", dir, err), s.close())
	}
	return s, err
}

func (s *sinks) openIn(dir string, c *engine.Config, warn func(error)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := inheritEvents(dir, c); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, configFile), []byte(c.String())); err != nil {
		return err
	}
	events, err := sink.OpenJSONL(filepath.Join(dir, eventsFile), c.TaskEvents, warn)
	if err != nil {
		return err
	}
	s.add(events)
	board, err := sink.CreateTensorBoard(dir, time.Now, warn)
	if err != nil {
		return err
	}
	s.add(board)
	trace, err := sink.CreateTrace(freeName(dir, traceFile), warn)
	if err != nil {
		return err
	}
	s.add(trace)
	return nil
}

func (s *sinks) add(l interface {
	engine.Listener
	io.Closer
}) {
	s.Listeners = append(s.Listeners, l)
	s.open = append(s.open, l)
}

// close completes the files. Their errors have been warned of already, but the
// caller may want to know.
func (s *sinks) close() error {
	var errs []error
	for _, c := range s.open {
		errs = append(errs, c.Close())
	}
	s.open = nil
	return errors.Join(errs...)
}

// inheritEvents starts events.jsonl with the events of the run that is resumed,
// if that is another folder, so that every RUN tells its whole story.
func inheritEvents(dir string, c *engine.Config) error {
	if c.Resume == "" || filepath.Clean(c.Resume) == filepath.Clean(dir) {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(c.Resume, eventsFile))
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, eventsFile), data[:bytes.LastIndexByte(data, '\n')+1])
}

// freeName is dir/name, or dir/name-2 and so on if that is taken.
func freeName(dir, name string) string {
	ext := filepath.Ext(name)
	base := name[:len(name)-len(ext)]
	path := filepath.Join(dir, name)
	for n := 2; ; n++ {
		if _, err := os.Stat(path); err != nil {
			return path
		}
		path = filepath.Join(dir, fmt.Sprintf("%s-%d%s", base, n, ext))
	}
}

// writeFile replaces the file at path whole or not at all.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, bare(err))
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, bare(err))
	}
	return nil
}
