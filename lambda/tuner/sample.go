package tuner

import "time"

// Sample is the state of a run at one moment. It is taken to last until the next one,
// so a sample belongs wherever something changes: when a task is handed out, has ended
// or has become ready. Counters count from the start of the run and never fall; a
// sample that was left out loses a little accuracy, not tasks.
type Sample struct {
	// At is the time since the run began.
	At time.Duration
	// Graph tasks that are ready and wait for a core, and those that run on one.
	GraphWaiting, GraphRunning int
	// Tensor tasks that are ready and wait for a worker, and those handed to the
	// backend.
	TensorWaiting, TensorRunning int
	// Workers are those that are there, idle or not.
	Workers int
	// Done counts tensor tasks that have ended, and Busy is their time, all together.
	Done int64
	Busy time.Duration
	// Refused counts launches that the service refused for too many requests.
	Refused int64
}

// Figures are means over the time that a decision rests on.
type Figures struct {
	Seconds       float64 `json:"seconds"`
	GraphWaiting  float64 `json:"graph_waiting"`
	GraphUse      float64 `json:"graph_use"` // the share of the cores' time spent in graph tasks
	TensorWaiting float64 `json:"tensor_waiting"`
	TensorRunning float64 `json:"tensor_running"`
	Rate          float64 `json:"tensor_per_second"`
	TaskSeconds   float64 `json:"task_seconds"` // of a tensor task
	// Growth is by how many tasks the queue of graph tasks grows while one tensor task
	// ends: 0.2 says that the cores are 20 % slower than the workers. It is 0 where the
	// number of workers was not the same before.
	Growth float64 `json:"graph_growth"`
}

// window adds samples up.
type window struct {
	first, last              Sample
	gWait, gRun, tWait, tRun float64 // times seconds
	started                  bool
	afterDone                int64 // it begins when Done is there, and not before from
	due                      int64 // tasks of a whole number of epochs, when it has lasted long enough
	from                     time.Duration
}

// open makes a window that begins when skip tasks more have ended and pause has gone.
func (w *window) open(s Sample, skip int64, pause time.Duration) {
	*w = window{last: s, afterDone: s.Done + skip, from: s.At + pause}
}

// add takes in the time from the last sample to s.
func (w *window) add(s Sample) {
	if !w.started {
		if s.Done >= w.afterDone && s.At >= w.from {
			w.started, w.first = true, s
		}
		w.last = s
		return
	}
	dt := (s.At - w.last.At).Seconds()
	w.gWait += dt * float64(w.last.GraphWaiting)
	w.gRun += dt * float64(w.last.GraphRunning)
	w.tWait += dt * float64(w.last.TensorWaiting)
	w.tRun += dt * float64(w.last.TensorRunning)
	w.last = s
}

// lasted is what the window covers so far.
func (w *window) lasted() (tasks int64, d time.Duration) {
	if !w.started {
		return 0, 0
	}
	return w.last.Done - w.first.Done, w.last.At - w.first.At
}

// full says that the window has lasted long enough and holds whole epochs: parts of one
// differ too much from each other.
func (w *window) full(epoch int64, least time.Duration) bool {
	tasks, d := w.lasted()
	if d < least || tasks == 0 {
		return false
	}
	if w.due == 0 {
		w.due = (tasks + epoch - 1) / epoch * epoch
	}
	return tasks >= w.due
}

// figures are the means; of a window in which time has passed and tasks have ended.
func (w *window) figures(cores int) Figures {
	tasks, d := w.lasted()
	t := d.Seconds()
	return Figures{
		Seconds: t, GraphWaiting: w.gWait / t, GraphUse: min(w.gRun/t/float64(cores), 1),
		TensorWaiting: w.tWait / t, TensorRunning: w.tRun / t,
		Rate: float64(tasks) / t, TaskSeconds: (w.last.Busy - w.first.Busy).Seconds() / float64(tasks),
	}
}
