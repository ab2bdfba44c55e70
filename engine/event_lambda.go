package engine

import "dorylus/engine/task"

// WorkerCame is a Lambda worker that has opened its stream.
type WorkerCame struct {
	Worker  int     `json:"worker"` // its number; none comes twice
	Device  string  `json:"device"`
	Took    float64 `json:"seconds"` // since it was sent for
	Workers int     `json:"workers"` // that are there now
}

// WorkerLeft is a Lambda worker whose stream has ended, or one that was sent for and
// has not come.
type WorkerLeft struct {
	Worker  int    `json:"worker"`
	Why     string `json:"why"`
	Came    bool   `json:"came"`
	Tasks   int64  `json:"tasks"`   // that it has done
	Workers int    `json:"workers"` // that are there now
}

// Hedged says that a task takes long and is started on a second worker while the first
// goes on: the first result counts. A task that has failed and is run again is Retried.
type Hedged struct {
	Task    task.Task `json:"task"`
	Attempt int       `json:"attempt"` // which one this is, from 1
	Worker  int       `json:"worker"`  // the one that takes long
	After   float64   `json:"after_seconds"`
}

// OwnCores says that the graph server's own cores do a task because no worker can. Of
// many in a row, those whose number is a power of two are told, and the last one at the
// end of the run.
type OwnCores struct {
	Task  task.Task `json:"task"`
	Tasks int64     `json:"tasks"` // how many that are, in the whole run
	Cause string    `json:"cause"`
}

// Kind implements Event.
func (WorkerCame) Kind() string { return "worker_came" }
func (WorkerLeft) Kind() string { return "worker_left" }
func (Hedged) Kind() string     { return "hedge" }
func (OwnCores) Kind() string   { return "own_cores" }

// LambdasTuned is a decision of the autotuner: how many workers are wanted from now on,
// and what it rests on.
type LambdasTuned struct {
	Before  int    `json:"before"`
	Workers int    `json:"workers"`
	Why     string `json:"why"`
	// Means over the time that was looked at: tensor tasks that ended in a second, graph
	// tasks that waited for a core, tensor tasks that waited for a worker.
	Rate        float64 `json:"tensor_per_second"`
	GraphQueue  float64 `json:"graph_waiting"`
	TensorQueue float64 `json:"tensor_waiting"`
}

// Kind implements Event.
func (LambdasTuned) Kind() string { return "lambdas_tuned" }

// Wired is what a run has sent to its Lambda workers and got back, in bytes, and what a
// training epoch would take by other ways; it comes at the end.
type Wired struct {
	Sent     int64 `json:"sent_bytes"`
	Received int64 `json:"received_bytes"`
	// Of Sent: what stays with workers, and weights.
	Shards  int64 `json:"shard_bytes"`
	Weights int64 `json:"weight_bytes"`
	// Naive are the bytes of an epoch that sends every input and returns every output of
	// every task, Planned those of this protocol, both before compression and without
	// shards; the others are what each idea takes off, one on top of the other.
	Naive     int64 `json:"naive_epoch_bytes"`
	Planned   int64 `json:"planned_epoch_bytes"`
	Fusion    int64 `json:"saved_by_fusion"`
	Residency int64 `json:"saved_by_residency"`
	Remade    int64 `json:"saved_by_rematerialisation"`
	Order     int64 `json:"saved_by_order"`
	Merged    int64 `json:"saved_by_merging"`
}

// Kind implements Event.
func (Wired) Kind() string { return "wired" }

// Add adds what another server has sent.
func (w *Wired) Add(o Wired) {
	w.Sent, w.Received, w.Shards, w.Weights = w.Sent+o.Sent, w.Received+o.Received, w.Shards+o.Shards, w.Weights+o.Weights
	w.Naive, w.Planned, w.Fusion, w.Residency = w.Naive+o.Naive, w.Planned+o.Planned, w.Fusion+o.Fusion, w.Residency+o.Residency
	w.Remade, w.Order, w.Merged = w.Remade+o.Remade, w.Order+o.Order, w.Merged+o.Merged
}
