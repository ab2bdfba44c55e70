package sched

import (
	"cmp"
	"slices"

	"dorylus/engine/task"
)

// Machine runs the intervals of one partition through the program's steps, epoch
// after epoch, and says which tasks may run now.
//
// Each own interval does its steps in order, one at a time. Two things can hold
// it up. Before step 0 of an epoch it waits until its epoch is open: epochs open
// in order, for all intervals alike, so that one number, Machine.open, and one
// list of who waits for it are enough. Before a step that gathers it waits until
// the rows of all its sources are new enough. Published epochs never go back, so
// it watches the first source that is too old, and goes on from there when that
// one moves: a wait costs one pass over the sources, however many others publish
// meanwhile. Counting down from the number of missing sources would touch every
// reader at each publication instead.
//
// With Config.Fresh an asynchronous run does what a synchronous one would, and what
// its bound allows beyond that waits for idle cores (Input.Idle): an epoch opens with
// its own weights, and a gather that may run (progress.late) goes on watching the first
// source that is not of its epoch.
//
// Everything it is told only ever moves forward; repeats, and messages that come
// late or in another order, change nothing.
type Machine struct {
	cfg   Config
	ahead int // Staleness, cut to the number of epochs: more means the same

	own []progress // by interval - Own.Lo

	// published[s][j] is the newest epoch whose rows of interval j, step s, can
	// be gathered; First-1 before the first. nil where step s publishes nothing.
	published [][]int32
	// watch[s][j] are the own intervals that wait for published[s][j] to move.
	watch [][][]watcher

	// finished[j] is the newest epoch that interval j has finished; holders[f] is
	// how many intervals stand at f, and slowest the smallest f of all.
	finished []int32
	holders  map[int]int
	slowest  int

	weights int     // the newest weight version
	limit   int     // epochs below it may start, as far as Hold and Allow go
	open    int     // every epoch below it starts as soon as an interval gets there
	atGate  []int32 // own intervals that wait for an epoch to open

	ready   []int32 // own intervals whose task is to be issued by this call
	running int     // tasks issued and neither done nor failed
	stopped bool
}

// progress is where an own interval stands: before, or at work on, step of epoch.
type progress struct {
	epoch  int
	step   int
	issued bool // the task is out
	cursor int  // a gather waits for this one of its sources; those before are new enough
	late   bool // a gather may run, but waits for fresh rows
	watch  int  // counts the waits for a source; those of earlier ones are over
}

// watcher is an own interval and which of its waits it is.
type watcher struct {
	own   int32
	watch int
}

// New is a machine at the start of epoch c.First. It keeps the slices of c, which
// must not change any more.
func New(c Config) (*Machine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg:       c,
		ahead:     min(c.Staleness, c.Epochs),
		own:       make([]progress, c.Own.Len()),
		published: make([][]int32, len(c.Steps)),
		watch:     make([][][]watcher, len(c.Steps)),
		finished:  make([]int32, c.Intervals),
		holders:   map[int]int{c.First - 1: c.Intervals},
		slowest:   c.First - 1,
		weights:   c.First,
		limit:     c.Epochs,
		open:      c.First,
	}
	if c.Hold > 0 {
		m.limit = min(c.First+min(c.Hold, c.Epochs), c.Epochs)
	}
	for j := range m.finished {
		m.finished[j] = int32(c.First - 1)
	}
	for s, st := range c.Steps {
		if st.Publishes {
			m.published[s] = slices.Clone(m.finished)
			m.watch[s] = make([][]watcher, c.Intervals)
		}
	}
	for i := range m.own {
		m.own[i].epoch = c.First
		m.atGate = append(m.atGate, int32(i))
	}
	return m, nil
}

// Start returns the tasks that may run before anything has happened.
func (m *Machine) Start() []task.Task { return m.take() }

// Step tells the machine what happened and returns the tasks that may run now and
// could not before, the oldest epoch first and within it by interval.
func (m *Machine) Step(in Input) []task.Task {
	switch {
	case in.Done != nil:
		m.done(*in.Done)
	case in.Failed != nil:
		m.failed(*in.Failed)
	case in.Rows != nil:
		m.rows(*in.Rows)
	case in.Finished != nil:
		m.peerFinished(*in.Finished)
	case in.Weights != nil:
		m.weights = max(m.weights, *in.Weights)
	case in.Allow != nil:
		m.limit = max(m.limit, min(*in.Allow, m.cfg.Epochs))
	case in.Idle > 0:
		m.idle(in.Idle)
	case in.Stop:
		m.stopped = true
	}
	return m.take()
}

// outstanding is the own interval whose task id is out, or -1: for a task that is
// unknown, not issued yet, or done already.
func (m *Machine) outstanding(id task.ID) int {
	if !m.cfg.Own.Has(id.Interval) {
		return -1
	}
	i := id.Interval - m.cfg.Own.Lo
	if p := &m.own[i]; !p.issued || p.epoch != id.Epoch || p.step != id.Step {
		return -1
	}
	return i
}

func (m *Machine) done(id task.ID) {
	i := m.outstanding(id)
	if i < 0 {
		return
	}
	p := &m.own[i]
	p.issued = false
	m.running--
	if m.cfg.Steps[p.step].Publishes {
		m.publish(p.step, id.Interval, p.epoch)
	}
	p.step++
	if p.step < len(m.cfg.Steps) {
		p.cursor, p.late = 0, false
		m.gather(i)
		return
	}
	m.finish(id.Interval, p.epoch)
	p.epoch, p.step = p.epoch+1, 0
	switch {
	case p.epoch == m.cfg.Epochs: // this interval has run its course
	case p.epoch < m.open:
		m.ready = append(m.ready, int32(i))
	default:
		m.atGate = append(m.atGate, int32(i))
	}
}

func (m *Machine) failed(id task.ID) {
	i := m.outstanding(id)
	if i < 0 {
		return
	}
	m.own[i].issued = false
	m.running--
	m.ready = append(m.ready, int32(i))
}

// rows takes what another partition has sent. Own intervals publish by being done.
func (m *Machine) rows(r Rows) {
	if m.isPeer(r.Interval) && r.Step >= 0 && r.Step < len(m.cfg.Steps) &&
		m.cfg.Steps[r.Step].Publishes && r.Epoch < m.cfg.Epochs {
		m.publish(r.Step, r.Interval, r.Epoch)
	}
}

func (m *Machine) peerFinished(f Finish) {
	if m.isPeer(f.Interval) && f.Epoch < m.cfg.Epochs {
		m.finish(f.Interval, f.Epoch)
	}
}

// isPeer says whether interval j is another partition's.
func (m *Machine) isPeer(j int) bool {
	return j >= 0 && j < m.cfg.Intervals && !m.cfg.Own.Has(j)
}

// publish notes that the rows of interval j, step s, are those of epoch, unless
// newer ones are known, and lets those who watch them look on.
func (m *Machine) publish(s, j, epoch int) {
	if int(m.published[s][j]) >= epoch {
		return
	}
	m.published[s][j] = int32(epoch)
	woken := m.watch[s][j]
	m.watch[s][j] = woken[:0] // who must go on watching j is kept in place, behind the loop
	for _, w := range woken {
		if m.own[w.own].watch == w.watch { // it has not run meanwhile
			m.gather(int(w.own))
		}
	}
}

// gather makes own interval i ready if all sources of its step are as new as they
// shall be, and else has it watch the first that is not.
func (m *Machine) gather(i int) {
	p := &m.own[i]
	p.watch++
	src := m.missing(i)
	if src < 0 && m.cfg.Fresh && !p.late {
		p.late, p.cursor = true, 0
		src = m.missing(i)
	}
	if src >= 0 {
		r := m.cfg.Steps[p.step].Reads
		m.watch[r][src] = append(m.watch[r][src], watcher{int32(i), p.watch})
		return
	}
	p.late = false
	m.ready = append(m.ready, int32(i))
}

// missing moves the cursor of own interval i over the sources that are new enough
// and is the first that is not, or -1.
func (m *Machine) missing(i int) int {
	p := &m.own[i]
	st := &m.cfg.Steps[p.step]
	if st.Reads < 0 {
		return -1
	}
	need := p.epoch
	if !p.late {
		need = m.need(p.epoch)
	}
	have, sources := m.published[st.Reads], st.Sources[i]
	for ; p.cursor < len(sources); p.cursor++ {
		if j := sources[p.cursor]; int(have[j]) < need {
			return int(j)
		}
	}
	return -1
}

// need is the oldest epoch whose rows a gather of epoch e may read: e itself when
// sync, e-1-Staleness otherwise, but never none at all.
func (m *Machine) need(e int) int {
	if m.cfg.Sync {
		return e
	}
	return max(m.cfg.First, e-1-m.ahead)
}

// finish notes that interval j has finished epoch, unless a later one is known.
func (m *Machine) finish(j, epoch int) {
	was := int(m.finished[j])
	if was >= epoch {
		return
	}
	m.finished[j] = int32(epoch)
	m.holders[epoch]++
	m.holders[was]--
	if m.holders[was] > 0 {
		return
	}
	delete(m.holders, was)
	if was == m.slowest {
		for m.holders[m.slowest] == 0 {
			m.slowest++
		}
	}
}

// bound is the first epoch that may not start yet.
func (m *Machine) bound() int {
	if m.cfg.Sync {
		return min(m.limit, m.weights+1) // epoch e needs version e
	}
	// Epoch e needs every interval past e-1-S, and version e-S.
	return min(m.limit, m.slowest+m.ahead+2, m.weights+m.ahead+1)
}

// idle makes up to n tasks ready that may run and wait for something fresher, the
// oldest epoch first and within it by interval.
func (m *Machine) idle(n int) {
	bound := m.bound()
	var late []int32
	for i := range m.own {
		if p := &m.own[i]; !p.issued && (p.late || p.step == 0 && p.epoch < bound && slices.Contains(m.atGate, int32(i))) {
			late = append(late, int32(i))
		}
	}
	slices.SortStableFunc(late, func(a, b int32) int { return cmp.Compare(m.own[a].epoch, m.own[b].epoch) })
	for _, i := range late[:min(n, len(late))] {
		p := &m.own[i]
		if p.late {
			p.late = false
			p.watch++
		} else {
			m.atGate = slices.DeleteFunc(m.atGate, func(j int32) bool { return j == i })
		}
		m.ready = append(m.ready, i)
	}
}

// take opens the epochs that start, and issues what is ready.
func (m *Machine) take() []task.Task {
	open := m.bound()
	if m.cfg.Fresh {
		open = min(open, m.weights+1)
	}
	if open > m.open {
		m.open = open
		kept := m.atGate[:0]
		for _, i := range m.atGate {
			if m.own[i].epoch < open {
				m.ready = append(m.ready, i)
			} else {
				kept = append(kept, i)
			}
		}
		m.atGate = kept
	}
	if m.stopped || len(m.ready) == 0 {
		m.ready = m.ready[:0]
		return nil
	}
	tasks := make([]task.Task, len(m.ready))
	for n, i := range m.ready {
		p := &m.own[i]
		p.issued = true
		st := &m.cfg.Steps[p.step]
		tasks[n] = task.Task{
			ID:   task.ID{Epoch: p.epoch, Interval: m.cfg.Own.Lo + int(i), Step: p.step},
			Kind: st.Kind, Dir: st.Dir, Layer: st.Layer,
		}
	}
	m.running += len(tasks)
	m.ready = m.ready[:0]
	slices.SortFunc(tasks, func(a, b task.Task) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Interval, b.Interval))
	})
	return tasks
}
