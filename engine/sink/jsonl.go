package sink

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"dorylus/engine"
)

// TaskTotals sums tasks that have finished since the previous event: what
// events.jsonl holds in the place of TaskDone unless every task is asked for.
type TaskTotals struct {
	Epoch int              `json:"epoch"`
	Nanos map[string]int64 `json:"nanoseconds"` // by kind, as in Summary.TaskSeconds
	Count map[string]int64 `json:"count"`       // tasks by kind
	Age   []int64          `json:"age,omitempty"`
}

// Kind implements engine.Event.
func (TaskTotals) Kind() string { return "tasks" }

// add counts one task.
func (t *TaskTotals) add(e engine.TaskDone) {
	kind := taskKind(e)
	t.Nanos[kind] += int64(e.Took)
	t.Count[kind]++
	t.Age = addAges(t.Age, e.Age)
}

// addAges is a + b, element by element, as long as the longer one.
func addAges(a, b []int64) []int64 {
	if len(a) < len(b) {
		a = append(a, make([]int64, len(b)-len(a))...)
	}
	for i, n := range b {
		a[i] += n
	}
	return a
}

// taskKind is the key of a task in TaskSeconds: the name of its step without
// layer ("GA", "∇AV", "AV+loss+∇AV"), "eval" for all tasks of evaluations.
func taskKind(e engine.TaskDone) string {
	switch {
	case strings.HasPrefix(e.Name, "eval"):
		return "eval"
	case e.Name == "":
		return e.Task.Name()
	}
	return e.Name
}

// JSONL writes one event per line, {"event":kind,...}. A line is complete on
// disk at the end of each epoch, evaluation and run.
type JSONL struct {
	w     *bufio.Writer
	close func() error
	tasks bool
	fail  *failure

	pending map[int]*TaskTotals // by epoch
}

// NewJSONL writes to w. tasks asks for every TaskDone in the place of sums.
func NewJSONL(w io.Writer, tasks bool, warn func(error)) *JSONL {
	return &JSONL{
		w: bufio.NewWriter(w), close: func() error { return nil }, tasks: tasks,
		fail: newFailure("write events", warn), pending: map[int]*TaskTotals{},
	}
}

// OpenJSONL appends to the file at path, which need not exist. An incomplete
// last line, left by a process that was killed, is cut off.
func OpenJSONL(path string, tasks bool, warn func(error)) (*JSONL, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := seekPastLastLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	j := NewJSONL(f, tasks, warn)
	j.fail.what = "write " + path
	j.close = f.Close
	return j, nil
}

// seekPastLastLine moves to the end of the last complete line and cuts the rest.
func seekPastLastLine(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	const chunk = 64 << 10
	buf := make([]byte, chunk)
	for end := size; end > 0; {
		start := max(0, end-chunk)
		if _, err := f.ReadAt(buf[:end-start], start); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(buf[:end-start], '\n'); i >= 0 {
			size = start + int64(i) + 1
			break
		}
		if end = start; end == 0 {
			size = 0
		}
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err = f.Seek(size, io.SeekStart)
	return err
}

// Event implements engine.Listener.
func (j *JSONL) Event(e engine.Event) {
	if j.fail.failed() {
		return
	}
	if t, ok := e.(engine.TaskDone); ok && !j.tasks {
		p := j.pending[t.Task.Epoch]
		if p == nil {
			p = &TaskTotals{Epoch: t.Task.Epoch, Nanos: map[string]int64{}, Count: map[string]int64{}}
			j.pending[t.Task.Epoch] = p
		}
		p.add(t)
		return
	}
	j.flushTotals()
	j.line(e)
	switch e.(type) {
	case engine.EpochDone, engine.Evaluated, engine.Checkpointed, engine.RunStart, engine.RunDone:
		j.fail.note(j.w.Flush())
	}
}

// flushTotals writes the sums of the tasks since the last line.
func (j *JSONL) flushTotals() {
	if len(j.pending) == 0 {
		return
	}
	var epochs []int
	for e := range j.pending {
		epochs = append(epochs, e)
	}
	slices.Sort(epochs)
	for _, e := range epochs {
		j.line(*j.pending[e])
	}
	clear(j.pending)
}

func (j *JSONL) line(e engine.Event) {
	data, err := Marshal(e)
	if err == nil {
		_, err = j.w.Write(append(data, '\n'))
	}
	j.fail.note(err)
}

// Close completes the file. It returns the first error of the sink's life.
func (j *JSONL) Close() error {
	if !j.fail.failed() {
		j.flushTotals()
		j.fail.note(j.w.Flush())
	}
	j.fail.note(j.close())
	return j.fail.err
}

// ReadEvents passes the events of an events.jsonl on to l, in order. An
// incomplete last line is left out.
func ReadEvents(r io.Reader, l engine.Listener) error {
	in := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		e, err := Unmarshal(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		l.Event(e)
	}
}

// ReadEventsFile is ReadEvents of the file at path.
func ReadEventsFile(path string, l engine.Listener) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := ReadEvents(f, l); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
