package sched

import (
	"errors"
	"fmt"
	"math"

	"dorylus/engine/task"
)

// Step is one position of the program that every interval runs through, once an
// epoch, as the scheduler sees it.
type Step struct {
	Kind  task.Kind
	Dir   task.Dir
	Layer int
	// Reads is the step whose published rows this one gathers, -1 for none. The
	// rows read are those of the intervals in Sources.
	Reads int
	// Sources[i] lists the intervals whose rows interval i gathers, for i in
	// Config.Own (indexed by i - Own.Lo), ascending. It may contain i itself.
	Sources [][]int32
	// Publishes says that the step's output becomes readable by other intervals
	// when it is done.
	Publishes bool
}

// Config says what a Machine schedules.
type Config struct {
	// Intervals is the number of intervals of all partitions, in the one order.
	Intervals int
	// Own are the intervals of this partition; the others' progress arrives as
	// Input.Rows and Input.Finished.
	Own task.Range
	// Steps is the program. It must not be empty.
	Steps []Step
	// First is the epoch to start at (0, or where a checkpoint left off) and
	// Epochs the number of epochs in all: the machine runs [First,Epochs).
	First, Epochs int
	// Sync: a gather waits for rows of its own epoch, and an epoch starts when
	// the weights of the one before are there. Otherwise the run is bounded
	// asynchronous (paper, section 5).
	Sync bool
	// Staleness is how many epochs an interval may run ahead of the slowest
	// one: it may start epoch e when every interval has finished e-1-Staleness.
	// 0, the default, lets nobody start e+1 before all have finished e, without
	// any barrier inside an epoch. Must be 0 when Sync.
	Staleness int
	// Fresh: what the bound allows but would compute with older rows or weights than
	// those of its own epoch waits until these are there, or until an Input.Idle asks
	// for it. Without, it may run at once. A sync run has no such tasks.
	Fresh bool
	// Hold is the number of epochs that may start, from First on, before an
	// Input.Allow raises it. 0 means all of them.
	Hold int
}

// Input tells the machine what happened. Exactly one field is set.
type Input struct {
	Done     *task.ID // the task has finished, its effects included
	Failed   *task.ID // the task has no effect and is to be issued again
	Rows     *Rows    // another partition's rows have arrived
	Finished *Finish  // an interval of another partition has finished an epoch
	Weights  *int     // this weight version is there: the updates of all epochs before it
	Idle     int      // so many cores have nothing to do and shall have what waits for fresher rows
	Allow    *int     // epochs below this one may start
	Stop     bool     // issue nothing more, not even a task that fails from now on
}

// Rows says that the rows which Step publishes have arrived from Interval, as
// computed in Epoch.
type Rows struct{ Interval, Step, Epoch int }

// Finish says that Interval has finished Epoch.
type Finish struct{ Interval, Epoch int }

// Validate reports every problem of c at once.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("schedule: "+format, args...)) }
	if c.Intervals < 1 {
		bad("%d intervals: at least 1 is needed", c.Intervals)
	}
	if c.Own.Lo < 0 || c.Own.Hi < c.Own.Lo || c.Own.Hi > c.Intervals {
		bad("own intervals [%d,%d) are not within [0,%d)", c.Own.Lo, c.Own.Hi, c.Intervals)
	}
	if len(c.Steps) == 0 {
		bad("the program has no steps")
	}
	if c.First < 0 || c.Epochs < c.First || c.Epochs > math.MaxInt32 {
		bad("epochs [%d,%d) are not a range within [0,2³¹)", c.First, c.Epochs)
	}
	if c.Hold < 0 {
		bad("a hold of %d epochs is negative", c.Hold)
	}
	if c.Staleness < 0 {
		bad("staleness %d is negative", c.Staleness)
	}
	if c.Sync && c.Staleness != 0 {
		bad("staleness %d needs the async pipeline", c.Staleness)
	}
	for s, st := range c.Steps {
		if st.Reads < 0 {
			continue
		}
		if st.Reads >= s || !c.Steps[st.Reads].Publishes {
			bad("step %d reads step %d, which does not publish before it", s, st.Reads)
		}
		if len(st.Sources) != c.Own.Len() {
			bad("step %d has sources for %d intervals of %d", s, len(st.Sources), c.Own.Len())
		}
		for i, src := range st.Sources {
			for _, j := range src {
				if j < 0 || int(j) >= c.Intervals {
					bad("step %d: interval %d gathers from interval %d of %d", s, c.Own.Lo+i, j, c.Intervals)
				}
			}
		}
	}
	return errors.Join(errs...)
}
