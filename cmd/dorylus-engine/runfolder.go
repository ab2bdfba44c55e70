package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	if c.Resume == "" || filepath.Clean(f.path) != filepath.Clean(c.Resume) {
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

// forgetRun removes what an attempt has left in dir that came to no checkpoint.
func forgetRun(dir string) error {
	for _, name := range []string{configFile, eventsFile, summaryFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("begin again in %s: %w", dir, bare(err))
		}
	}
	return nil
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

// keep writes the summary of several runs, and their settings; a single one has
// written them itself.
func (f *runFolder) keep(c *engine.Config, s sink.Summary) error {
	if f.path == "" || c.Runs == 1 {
		return nil
	}
	data, err := s.JSON()
	if err != nil {
		return err
	}
	return errors.Join(writeFile(filepath.Join(f.path, summaryFile), data), writeFile(filepath.Join(f.path, configFile), []byte(c.String())))
}

// sinks are the files that one run writes.
type sinks struct {
	engine.Listeners
	open []io.Closer
	made []string // files that were not there before
}

// openSinks opens the files of a run in dir, "" for none. warn is told of those
// that cannot be written any more.
func openSinks(dir string, c *engine.Config, warn func(error)) (*sinks, error) {
	s := &sinks{}
	if dir == "" {
		return s, nil
	}
	if err := s.openIn(dir, c, warn); err != nil {
		err = errors.Join(err, s.close())
		s.discard()
		return nil, fmt.Errorf("start a run in %s: %w", dir, err)
	}
	return s, nil
}

func (s *sinks) openIn(dir string, c *engine.Config, warn func(error)) error {
	if !exists(dir) {
		s.made = append(s.made, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, eventsFile)
	if !exists(path) {
		s.made = append(s.made, path)
	}
	if err := inheritEvents(path, c); err != nil {
		return err
	}
	events, err := sink.OpenJSONL(path, c.TaskEvents, warn)
	if err != nil {
		return err
	}
	s.add(events)
	path = filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%d.%d", time.Now().Unix(), os.Getpid()))
	s.made = append(s.made, path)
	board, err := sink.CreateTensorBoard(path, time.Now, warn)
	if err != nil {
		return err
	}
	s.add(board)
	path = freeName(dir, traceFile)
	s.made = append(s.made, path)
	trace, err := sink.CreateTrace(path, warn)
	if err != nil {
		return err
	}
	s.add(trace)
	s.Listeners = append(s.Listeners, &settingsKeeper{filepath.Join(dir, configFile), c.String(), warn})
	return nil
}

func (s *sinks) add(l interface {
	engine.Listener
	io.Closer
}) {
	s.Listeners = append(s.Listeners, l)
	s.open = append(s.open, l)
}

// close completes the files. Their errors have been warned of already.
func (s *sinks) close() error {
	var errs []error
	for _, c := range s.open {
		errs = append(errs, c.Close())
	}
	s.open = nil
	return errors.Join(errs...)
}

// discard removes what a run that never began has made.
func (s *sinks) discard() {
	for i := len(s.made) - 1; i >= 0; i-- { // files before their folder
		_ = os.Remove(s.made[i]) // what another process has put there stays
	}
}

// settingsKeeper writes the settings of a run once it has begun: those of a
// resumed run stay when its new settings do not fit.
type settingsKeeper struct {
	path, text string
	warn       func(error)
}

func (k *settingsKeeper) Event(e engine.Event) {
	if _, ok := e.(engine.RunStart); !ok {
		return
	}
	if err := writeFile(k.path, []byte(k.text)); err != nil {
		k.warn(err)
	}
}

// inheritEvents starts the events file at path with the events of the run that is
// resumed, if that is in another folder, so that every RUN tells its whole story.
func inheritEvents(path string, c *engine.Config) error {
	from := filepath.Join(c.Resume, eventsFile)
	if c.Resume == "" || filepath.Clean(from) == filepath.Clean(path) {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(path, data[:bytes.LastIndexByte(data, '\n')+1])
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
