package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dorylus/bench/load"
)

// lab is where runs are made, and with what.
type lab struct {
	engine, reference, data string
	folder                  string // of the runs
	seeds, epochs           int

	version string // of the engine
	runs    int
	stores  map[string]string // prepared ones, by name
	single  map[string]*run   // by one process, by flags
	loads   []load.Load
	again   []string // why runs were made again
}

// set is how many servers a run has; of none, it is one process.
type set struct{ Graphs, Params int }

func (s set) String() string {
	if s.Graphs == 0 {
		return "one process"
	}
	return fmt.Sprintf("%d + %d servers", s.Graphs, s.Params)
}

// run is one training and what it has left behind.
type run struct {
	folder  string
	summary summary
	servers []server
	// cpu are the processor seconds of all its processes, from start to end; wall the
	// seconds from start to end.
	cpu, wall float64
	epochs    []float64 // seconds of each
}

// summary is the part of summary.json that is looked at.
type summary struct {
	Dataset      string             `json:"dataset"`
	Vertices     int                `json:"vertices"`
	Edges        int64              `json:"edges"`
	Loss         float64            `json:"loss"`
	ValAcc       float64            `json:"val_acc"`
	TestAcc      float64            `json:"test_acc"`
	BestEpoch    int                `json:"best_epoch"`
	EpochSeconds float64            `json:"epoch_seconds"`
	Tasks        map[string]float64 `json:"task_seconds"`
	Peak         int64              `json:"peak_memory_bytes"`
	Staleness    map[int]int64      `json:"staleness"`
	RowAge       map[int]int64      `json:"row_age"`
	Intervals    int                `json:"intervals"`
	Threads      int                `json:"threads"`
	Version      string             `json:"version"`
	Weights      string             `json:"weights_sha256"`
	Predictions  string             `json:"predictions_sha256"`
}

// meanEpoch is the mean time of an epoch, in seconds.
func (r *run) meanEpoch() float64 { return mean(r.epochs) }

// say tells how far things are, on standard error.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench/cluster: "+format+"\n", args...)
}

// call runs the engine and returns its standard output.
func (l *lab) call(args ...string) ([]byte, error) {
	out, _, err := l.watched(nil, args...)
	return out, err
}

// watched is call; meanwhile, if not nil, is told the engine's process and has to return
// when done is closed.
func (l *lab) watched(meanwhile func(pid int, done <-chan struct{}), args ...string) ([]byte, *os.ProcessState, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(l.engine, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	watch := load.Begin()
	err := cmd.Start()
	if err == nil {
		done, gone := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(gone)
			if meanwhile != nil {
				meanwhile(cmd.Process.Pid, done)
			}
		}()
		err = cmd.Wait()
		close(done)
		<-gone
	}
	if x, ok := watch.Since(cmd.ProcessState); ok {
		l.loads = append(l.loads, x)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w:\n%s", l.engine, strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), cmd.ProcessState, nil
}

// prepare makes a store of a source, once.
func (l *lab) prepare(name, source string, flags ...string) (string, error) {
	if dir := l.stores[name]; dir != "" {
		return dir, nil
	}
	dir := filepath.Join(l.folder, "store-"+name)
	l.say("prepare %s", name)
	if _, err := l.call(slices.Concat([]string{"prepare", source, "--out=" + dir}, flags)...); err != nil {
		return "", err
	}
	if l.stores == nil {
		l.stores = map[string]string{}
	}
	l.stores[name] = dir
	return dir, nil
}

// newFolder is where a run is kept.
func (l *lab) newFolder() string {
	l.runs++
	return filepath.Join(l.folder, fmt.Sprintf("run-%d", l.runs))
}

// tryAgain is the exit code of a run that has lost a server, such as one that somebody
// else has killed.
const tryAgain = 75

// forget removes what a run has left that is to be made again, unless it goes on from it.
func (l *lab) forget(folder string, flags []string) error {
	if slices.Contains(flags, "--resume="+folder) {
		return nil
	}
	return os.RemoveAll(folder)
}

// train trains on a set of servers. Flags with --resume go on in that folder.
func (l *lab) train(s set, flags ...string) (*run, error) { return l.trainWhile(s, nil, flags...) }

func (l *lab) trainWhile(s set, meanwhile func(pid int, done <-chan struct{}), flags ...string) (*run, error) {
	args := []string{"train"}
	if s.Graphs > 0 {
		args = []string{"launch", "local", fmt.Sprintf("--servers=%d", s.Graphs), fmt.Sprintf("--params=%d", s.Params)}
	}
	r := &run{}
	for _, f := range flags {
		if dir, ok := strings.CutPrefix(f, "--resume="); ok {
			r.folder = dir
		}
	}
	if r.folder == "" {
		r.folder = l.newFolder()
		args = append(args, "--out="+r.folder)
	}
	l.say("%v: %s", s, strings.Join(flags, " "))
	args = slices.Concat(args, []string{"--progress=none", "--json"}, flags)
	start := time.Now()
	out, state, err := l.watched(meanwhile, args...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == tryAgain && meanwhile == nil {
		l.say("once more: %v", err)
		l.again = append(l.again, err.Error())
		if err := l.forget(r.folder, flags); err != nil {
			return nil, err
		}
		start = time.Now()
		out, state, err = l.watched(nil, args...)
	}
	if err != nil {
		return nil, err
	}
	r.wall = time.Since(start).Seconds()
	r.cpu = (state.UserTime() + state.SystemTime()).Seconds()
	if err := json.Unmarshal(out, &r.summary); err != nil {
		return nil, fmt.Errorf("read the summary of %v with %s: %w", s, strings.Join(flags, " "), err)
	}
	l.version = r.summary.Version
	r.servers, r.epochs, err = readServers(filepath.Join(r.folder, "events.jsonl"))
	if err == nil && len(r.servers) != s.Graphs {
		err = fmt.Errorf("%d of %d graph servers have told what they have done", len(r.servers), s.Graphs)
	}
	return r, err
}

// machine describes the processor that the engine takes by default.
func (l *lab) machine() (load.Machine, error) {
	text, err := l.call("devices", "--json")
	if err != nil {
		return load.Machine{}, err
	}
	return load.Describe(text)
}
