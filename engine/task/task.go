// Package task names the units of work of the pipeline, in the paper's words
// (Dorylus, OSDI'21, section 4).
package task

import "fmt"

// Kind is what a task does.
type Kind uint8

// The kinds. GA and SC are graph-parallel and run on the graph server; AV and AE
// are tensor-parallel and run on a Backend; WU is the parameter server's.
const (
	GA Kind = iota // gather: aggregate the rows of in-neighbours
	AV             // apply vertex: dense products, activations, loss
	SC             // scatter: publish an interval's rows to those who gather them
	AE             // apply edge: per-edge scores
	WU             // weight update
)

// String is the paper's abbreviation.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

var kindNames = [...]string{GA: "GA", AV: "AV", SC: "SC", AE: "AE", WU: "WU"}

// Tensor says whether tasks of this kind run on a Backend.
func (k Kind) Tensor() bool { return k == AV || k == AE }

// Dir is the direction of a task: forward, or backward (written ∇).
type Dir uint8

// Directions.
const (
	Forward Dir = iota
	Backward
)

// ID identifies one task of a run. It is the key of idempotence: whatever
// arrives twice under one ID counts once.
type ID struct {
	Epoch    int
	Interval int // in the one order, over all partitions
	Step     int // index into the model's program
}

// String is "e3/i2/s5".
func (id ID) String() string { return fmt.Sprintf("e%d/i%d/s%d", id.Epoch, id.Interval, id.Step) }

// Task is an ID with what its step is.
type Task struct {
	ID
	Kind  Kind
	Dir   Dir
	Layer int // 1-based
}

// Name is the task's kind with ∇ before backward ones: "GA", "∇AV".
func (t Task) Name() string {
	if t.Dir == Backward {
		return "∇" + t.Kind.String()
	}
	return t.Kind.String()
}

// String is "∇AV1 e3/i2/s5".
func (t Task) String() string { return fmt.Sprintf("%s%d %v", t.Name(), t.Layer, t.ID) }

// Range is the half-open range of intervals [Lo,Hi).
type Range struct{ Lo, Hi int }

// Len is the number of intervals in r.
func (r Range) Len() int { return r.Hi - r.Lo }

// Has says whether r contains i.
func (r Range) Has(i int) bool { return r.Lo <= i && i < r.Hi }
