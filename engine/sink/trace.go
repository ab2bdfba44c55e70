package sink

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"dorylus/engine"
)

// MaxTraceTasks is how many tasks a trace holds: some 20 MB, more than viewers
// like. Tasks beyond are counted in its last entry.
const MaxTraceTasks = 200_000

// Trace writes the tasks in the JSON that Perfetto and chrome://tracing read: a
// process per server, a thread per worker, epochs and evaluations as marks.
type Trace struct {
	w     *bufio.Writer
	close func() error
	limit int
	fail  *failure

	written, dropped int
	workers          map[int]bool
	last             time.Duration // end of the latest task
	first            bool
}

// NewTrace writes at most limit tasks to w.
func NewTrace(w io.Writer, limit int, warn func(error)) *Trace {
	t := &Trace{
		w: bufio.NewWriter(w), close: func() error { return nil }, limit: limit,
		fail: newFailure("write trace", warn), workers: map[int]bool{}, first: true,
	}
	_, err := t.w.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`)
	t.fail.note(err)
	return t
}

// CreateTrace writes the file at path, with at most MaxTraceTasks tasks.
func CreateTrace(path string, warn func(error)) (*Trace, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	t := NewTrace(f, MaxTraceTasks, warn)
	t.fail.what = "write " + path
	t.close = f.Close
	return t, nil
}

// server is the process id of a trace: ranks start at 0, viewers want 1.
const server = 1

// traceEvent is one entry of the format. Times are microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // X: a span, i: a mark, M: a name
	Pid   int            `json:"pid"`
	Tid   int            `json:"tid"`
	TS    float64        `json:"ts"`
	Dur   float64        `json:"dur,omitempty"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// Event implements engine.Listener.
func (t *Trace) Event(e engine.Event) {
	switch e := e.(type) {
	case engine.RunStart:
		t.put(traceEvent{Name: "process_name", Phase: "M", Pid: server, Args: map[string]any{
			"name": fmt.Sprintf("graph server 0: %s on %s, %s", e.Model, e.Dataset, e.Device)}})
	case engine.TaskDone:
		t.task(e)
	case engine.EpochDone:
		t.mark(fmt.Sprintf("epoch %d", e.Epoch+1), map[string]any{"loss": Number(e.Loss)})
	case engine.Evaluated:
		t.mark(fmt.Sprintf("evaluation %d", e.Epoch+1), map[string]any{"val": Number(e.Val), "test": Number(e.Test)})
	case engine.Checkpointed:
		t.mark(fmt.Sprintf("checkpoint %d", e.Epoch), map[string]any{"bytes": e.Bytes})
	case engine.Retried:
		t.mark("retry "+e.Task.String(), map[string]any{"attempt": e.Attempt, "cause": e.Cause})
	case engine.RunDone:
		if t.dropped > 0 {
			t.mark(fmt.Sprintf("the trace ends at %d tasks; %d more are not in it", t.written, t.dropped), nil)
		}
	}
}

func (t *Trace) task(e engine.TaskDone) {
	if t.written >= t.limit {
		t.dropped++
		return
	}
	t.written++
	if !t.workers[e.Worker] {
		t.workers[e.Worker] = true
		t.put(traceEvent{Name: "thread_name", Phase: "M", Pid: server, Tid: e.Worker + 1,
			Args: map[string]any{"name": fmt.Sprintf("worker %d", e.Worker)}})
	}
	t.last = max(t.last, e.Start+e.Took)
	t.put(traceEvent{
		Name: e.Name, Phase: "X", Pid: server, Tid: e.Worker + 1, TS: micros(e.Start), Dur: micros(e.Took),
		Args: map[string]any{"epoch": e.Task.Epoch, "interval": e.Task.Interval, "layer": e.Task.Layer},
	})
}

// mark puts an instant at the end of the latest task.
func (t *Trace) mark(name string, args map[string]any) {
	t.put(traceEvent{Name: name, Phase: "i", Pid: server, TS: micros(t.last), Scope: "p", Args: args})
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

func (t *Trace) put(e traceEvent) {
	if t.fail.failed() {
		return
	}
	data, err := json.Marshal(e)
	if err == nil {
		sep := ",\n"
		if t.first {
			sep, t.first = "\n", false
		}
		_, err = t.w.WriteString(sep + string(data))
	}
	t.fail.note(err)
}

// Close completes the file. It returns the first error of the sink's life.
func (t *Trace) Close() error {
	if !t.fail.failed() {
		_, err := t.w.WriteString("\n]}\n")
		t.fail.note(err)
		t.fail.note(t.w.Flush())
	}
	t.fail.note(t.close())
	return t.fail.err
}
