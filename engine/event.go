package engine

import (
	"time"

	"dorylus/engine/task"
)

// Event is something that happened in a run. Everything shown to people
// (progress, tables, summaries, traces) is computed from the events.
type Event interface{ Kind() string }

// Listener receives events in order, from one goroutine at a time. It must be
// quick: a slow sink queues on its own.
type Listener interface{ Event(Event) }

// Listeners passes each event to all of its members.
type Listeners []Listener

// Event implements Listener.
func (l Listeners) Event(e Event) {
	for _, x := range l {
		x.Event(e)
	}
}

// RunStart opens a run.
type RunStart struct {
	Time       time.Time `json:"time"`
	Mode       string    `json:"mode"`
	Model      string    `json:"model"`
	Dataset    string    `json:"dataset"`
	Seed       uint64    `json:"seed"`
	Vertices   int       `json:"vertices"`
	Edges      int64     `json:"edges"`
	Features   int       `json:"features"`
	Classes    int       `json:"classes"`
	TrainRows  int       `json:"train_rows"`
	ValRows    int       `json:"val_rows"`
	TestRows   int       `json:"test_rows"`
	Parameters int64     `json:"parameters"` // trainable values
	Pipeline   string    `json:"pipeline"`   // "sync", "async"
	Staleness  int       `json:"staleness_bound"`
	Intervals  int       `json:"intervals"`
	Partitions int       `json:"partitions,omitempty"` // graph servers
	Threads    int       `json:"threads"`
	Epochs     int       `json:"epochs"`      // asked for
	FirstEpoch int       `json:"first_epoch"` // not 0 after a resume
	Device     string    `json:"device"`
	Version    string    `json:"version"` // of the engine
	Plan       []string  `json:"plan,omitempty"`
	Rates      *Rates    `json:"rates,omitempty"` // nil: not priced
}

// TaskDone is one finished task. Ages are of the rows that a gather read.
type TaskDone struct {
	Task   task.Task     `json:"task"`
	Name   string        `json:"name"`   // of the step: "GA", "AV+loss+∇AV", "eval GA"
	Worker int           `json:"worker"` // which worker ran it
	Start  time.Duration `json:"start"`  // since RunStart
	Took   time.Duration `json:"took"`
	// Age[a] counts source intervals whose rows were a epochs older than the
	// reader's epoch. nil but for gathers of a training epoch.
	Age []int64 `json:"age,omitempty"`
	// AgeFrom are the counts of Age by the partition that has the source. nil where there
	// is one partition.
	AgeFrom Ages `json:"age_from,omitempty"`
}

// EpochDone closes a training epoch: every interval has finished it and its
// weight update has been made.
type EpochDone struct {
	Epoch  int     `json:"epoch"` // 0-based
	Loss   float64 `json:"loss"`
	Took   float64 `json:"seconds"`              // since the previous EpochDone, evaluation excluded
	At     float64 `json:"at_seconds,omitempty"` // since RunStart
	Update float64 `json:"update_seconds"`
	LR     float64 `json:"lr,omitempty"` // the learning rate of the update
	// GradNorm is the norm of all gradients together before they were clipped.
	GradNorm float64 `json:"grad_norm,omitempty"`
}

// Evaluated has the metrics of one evaluation: the weights after Epoch.
type Evaluated struct {
	Epoch  int     `json:"epoch"`
	Metric string  `json:"metric"` // one of Metrics
	Train  float64 `json:"train"`
	Val    float64 `json:"val"`
	Test   float64 `json:"test"`
	// The accuracies, where Metric is another: of several labels a row, the share of
	// rows whose labels are all right.
	TrainAcc float64 `json:"train_acc,omitempty"`
	ValAcc   float64 `json:"val_acc,omitempty"`
	TestAcc  float64 `json:"test_acc,omitempty"`
	// ValLoss is the mean loss over validation rows.
	ValLoss float64 `json:"val_loss"`
	Best    bool    `json:"best"` // the best validation metric so far
	Took    float64 `json:"seconds"`
	At      float64 `json:"at_seconds,omitempty"` // since RunStart
}

// Classes has what the delivered weights, those of the best evaluation, say about each
// class on the test rows. It comes once, after the last evaluation.
type Classes struct {
	Epoch int      `json:"epoch"` // of the evaluation, as in Evaluated
	Names []string `json:"names,omitempty"`
	// Confusion is for one label a row: [want][got] counts rows.
	Confusion [][]int64 `json:"confusion,omitempty"`
	// For several labels a row, by class: rows that have it and were given it, that
	// were given it wrongly, and that have it and were not given it. Exact counts rows,
	// of Rows, with all labels right and no other.
	TP    []int64 `json:"true_positives,omitempty"`
	FP    []int64 `json:"false_positives,omitempty"`
	FN    []int64 `json:"false_negatives,omitempty"`
	Exact int64   `json:"exact,omitempty"`
	Rows  int64   `json:"rows"`
}

// Checkpointed says that a checkpoint is complete on disk.
type Checkpointed struct {
	Epoch int     `json:"epoch"` // epochs done
	Path  string  `json:"path"`
	Bytes int64   `json:"bytes"`
	Took  float64 `json:"seconds"`
}

// Retried says that a task failed and is run again.
type Retried struct {
	Task    task.Task `json:"task"`
	Attempt int       `json:"attempt"`
	Cause   string    `json:"cause"`
}

// Warned is something the user should know.
type Warned struct {
	Message string `json:"message"`
}

// RunDone closes a run.
type RunDone struct {
	Reason   string  `json:"reason"` // "epochs", "patience", "target", "max-cost", "interrupted", "failed"
	Error    string  `json:"error,omitempty"`
	Epochs   int     `json:"epochs_run"`
	Seconds  float64 `json:"total_seconds"`
	PeakMem  int64   `json:"peak_memory_bytes"`
	Weights  string  `json:"weights_sha256"`
	Predicts string  `json:"predictions_sha256"`
}

// Kind implements Event.
func (RunStart) Kind() string     { return "run_start" }
func (TaskDone) Kind() string     { return "task" }
func (EpochDone) Kind() string    { return "epoch" }
func (Evaluated) Kind() string    { return "eval" }
func (Classes) Kind() string      { return "classes" }
func (Checkpointed) Kind() string { return "checkpoint" }
func (Retried) Kind() string      { return "retry" }
func (Warned) Kind() string       { return "warning" }
func (RunDone) Kind() string      { return "run_done" }
