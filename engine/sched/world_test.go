package sched

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"dorylus/engine/task"
)

// world is a whole run in miniature: some partitions, each with a machine and its
// twin, a parameter server, and a network that delays, reorders and repeats. It
// knows the truth and checks every task that is issued against it.
type world struct {
	rng   *rand.Rand
	cfg   Config // of all partitions: Own is everything
	parts []*partition
	idle  int // cores of each partition, which say so when they are idle; 0: never
	push  int // the step whose task brings the interval's last gradients

	rows     map[[2]int]int // (step, interval): the newest epoch published
	finished []int          // by interval: the newest epoch finished
	pushed   map[int]int    // epoch: intervals that have pushed
	version  int
	done     map[task.ID]bool
	ages     map[int]int // how many source reads had this age
}

type partition struct {
	own      task.Range
	cfg      Config
	m        *Machine
	twin     *twin
	out      []task.ID
	inbox    []Input
	past     []Input // delivered before; may come again
	inputs   []Input // all that the machine was told, for the replay
	outputs  [][]task.Task
	received map[[2]int]int // rows that are here, own and others'
	allowed  int
}

// randomWorld makes a small run out of a seed.
func randomWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := Config{Intervals: 1 + rng.IntN(6), First: rng.IntN(3), Sync: rng.IntN(3) == 0}
	c.Epochs = c.First + rng.IntN(5)
	if !c.Sync {
		c.Staleness, c.Fresh = rng.IntN(4), rng.IntN(2) == 0
	}
	if rng.IntN(3) == 0 {
		c.Hold = 1 + rng.IntN(2)
	}
	c.Own = task.Range{Hi: c.Intervals}
	var published []int
	for s := range 1 + rng.IntN(6) {
		st := Step{Kind: task.Kind(rng.IntN(4)), Layer: 1 + rng.IntN(2), Reads: -1, Publishes: rng.IntN(2) == 0}
		if len(published) > 0 && rng.IntN(2) == 0 {
			st.Reads = published[rng.IntN(len(published))]
			for range c.Intervals {
				var src []int32
				for j := range c.Intervals {
					if rng.IntN(2) == 0 {
						src = append(src, int32(j))
					}
				}
				st.Sources = append(st.Sources, src)
			}
		}
		if st.Publishes {
			published = append(published, s)
		}
		c.Steps = append(c.Steps, st)
	}
	w := newWorld(rng, c, 1+rng.IntN(min(3, c.Intervals)))
	if c.Fresh {
		w.idle = rng.IntN(4)
	}
	if !c.Sync { // a sync epoch ends with the weights; async gradients may come sooner
		w.push = rng.IntN(len(c.Steps))
	}
	return w
}

// newWorld cuts the intervals of c at random into so many partitions, some of
// which may be empty.
func newWorld(rng *rand.Rand, c Config, partitions int) *world {
	w := &world{
		rng: rng, cfg: c, push: len(c.Steps) - 1, version: c.First,
		rows: map[[2]int]int{}, pushed: map[int]int{}, done: map[task.ID]bool{}, ages: map[int]int{},
		finished: make([]int, c.Intervals),
	}
	for j := range w.finished {
		w.finished[j] = c.First - 1
	}
	cuts := []int{0, c.Intervals}
	for len(cuts) <= partitions {
		cuts = append(cuts, rng.IntN(c.Intervals+1))
	}
	slices.Sort(cuts)
	for p := range partitions {
		part := &partition{own: task.Range{Lo: cuts[p], Hi: cuts[p+1]}, received: map[[2]int]int{}}
		part.cfg = c
		part.cfg.Own = part.own
		part.cfg.Steps = slices.Clone(c.Steps)
		for s, st := range part.cfg.Steps {
			if st.Sources != nil {
				part.cfg.Steps[s].Sources = st.Sources[part.own.Lo:part.own.Hi]
			}
		}
		part.allowed = c.Epochs
		if c.Hold > 0 {
			part.allowed = min(c.First+c.Hold, c.Epochs)
		}
		w.parts = append(w.parts, part)
	}
	return w
}

// run plays until nothing can happen any more and says what was wrong.
func (w *world) run() error {
	for _, p := range w.parts {
		m, err := New(p.cfg)
		if err != nil {
			return err
		}
		p.m, p.twin = m, newTwin(p.cfg)
		if err := w.compare(p, "Start", m.Start(), p.twin.issue()); err != nil {
			return err
		}
	}
	for faults, idles := 20, 100; ; {
		var can []func() error
		for _, p := range w.parts {
			for _, id := range p.out {
				can = append(can, func() error { return w.complete(p, id) })
				if faults > 0 {
					can = append(can, func() error { faults--; return w.tell(p, Input{Failed: &id}) })
				}
			}
			for n := range p.inbox {
				can = append(can, func() error { return w.deliver(p, n) })
			}
			if faults > 0 && len(p.past) > 0 {
				can = append(can, func() error { faults--; return w.tell(p, p.past[w.rng.IntN(len(p.past))]) })
			}
			if idles > 0 && len(p.out) < w.idle {
				can = append(can, func() error { idles--; return w.tell(p, Input{Idle: w.idle - len(p.out)}) })
			}
			if p.allowed < w.cfg.Epochs {
				can = append(can, func() error { p.allowed++; n := p.allowed; return w.tell(p, Input{Allow: &n}) })
			}
		}
		if len(can) == 0 {
			break
		}
		if err := can[w.rng.IntN(len(can))](); err != nil {
			return err
		}
	}
	return w.atEnd()
}

// complete does an outstanding task: the truth moves, others are told.
func (w *world) complete(p *partition, id task.ID) error {
	if w.done[id] {
		return fmt.Errorf("%v is done for the second time", id)
	}
	w.done[id] = true
	if err := w.stillRead(id); err != nil {
		return err
	}
	if w.cfg.Steps[id.Step].Publishes {
		w.rows[[2]int{id.Step, id.Interval}] = id.Epoch
		p.received[[2]int{id.Step, id.Interval}] = id.Epoch
		w.send(p, Input{Rows: &Rows{Interval: id.Interval, Step: id.Step, Epoch: id.Epoch}})
	}
	if id.Step == len(w.cfg.Steps)-1 {
		w.finished[id.Interval] = id.Epoch
		w.send(p, Input{Finished: &Finish{Interval: id.Interval, Epoch: id.Epoch}})
	}
	if id.Step == w.push {
		w.pushed[id.Epoch]++
		for w.pushed[w.version] == w.cfg.Intervals {
			w.version++
			v := w.version
			w.send(nil, Input{Weights: &v})
		}
	}
	p.past = append(p.past, Input{Done: &id}, Input{Failed: &id})
	return w.tell(p, Input{Done: &id})
}

// stillRead refuses, in sync, that rows are replaced while somebody reads them.
func (w *world) stillRead(id task.ID) error {
	if !w.cfg.Sync || !w.cfg.Steps[id.Step].Publishes {
		return nil
	}
	for _, p := range w.parts {
		for _, reader := range p.out {
			st := w.cfg.Steps[reader.Step]
			if st.Reads == id.Step && reader.Epoch != id.Epoch && slices.Contains(st.Sources[reader.Interval], int32(id.Interval)) {
				return fmt.Errorf("%v replaces rows that %v is reading", id, reader)
			}
		}
	}
	return nil
}

// send puts a message into the inbox of everybody but from.
func (w *world) send(from *partition, in Input) {
	for _, p := range w.parts {
		if p != from {
			p.inbox = append(p.inbox, in)
		}
	}
}

func (w *world) deliver(p *partition, n int) error {
	in := p.inbox[n]
	p.inbox = slices.Delete(p.inbox, n, n+1)
	p.past = append(p.past, in)
	return w.tell(p, in)
}

// tell passes an input to a partition's machine and twin.
func (w *world) tell(p *partition, in Input) error {
	if r := in.Rows; r != nil {
		key := [2]int{r.Step, r.Interval}
		if have, ok := p.received[key]; !ok || have < r.Epoch {
			p.received[key] = r.Epoch
		}
	}
	p.inputs = append(p.inputs, in)
	for _, id := range []*task.ID{in.Done, in.Failed} {
		if id != nil {
			p.out = slices.DeleteFunc(p.out, func(o task.ID) bool { return o == *id })
		}
	}
	return w.compare(p, describe(in), p.m.Step(in), p.twin.step(in))
}

// compare holds what the machine issued against the twin and against the truth.
func (w *world) compare(p *partition, what string, got, want []task.Task) error {
	p.outputs = append(p.outputs, got)
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("partition %v, %s: issued %v, the twin %v\n%s", p.own, what, got, want, p.m)
	}
	for _, t := range got {
		p.out = append(p.out, t.ID)
		if err := w.mayRun(p, t.ID); err != nil {
			return fmt.Errorf("partition %v, %s: %w\n%s", p.own, what, err, p.m)
		}
	}
	type facts struct {
		over         bool
		out, minimum int
	}
	g := facts{p.m.Finished(), p.m.Outstanding(), p.m.MinFinished()}
	if t := (facts{p.twin.over(), len(p.twin.out), p.twin.minFinished()}); g != t || g.out != len(p.out) {
		return fmt.Errorf("partition %v, %s: the machine says %+v, the twin %+v, out are %v", p.own, what, g, t, p.out)
	}
	for j := range w.cfg.Intervals {
		if got, want := p.m.Epoch(j), p.twin.finished(j)+1; got != want {
			return fmt.Errorf("partition %v, %s: interval %d is in epoch %d, the twin says %d", p.own, what, j, got, want)
		}
	}
	return nil
}

// mayRun holds a task against the truth, not against what the partition knows.
func (w *world) mayRun(p *partition, id task.ID) error {
	if w.done[id] {
		return fmt.Errorf("%v is issued after it was done", id)
	}
	e, bound := id.Epoch, w.cfg.Staleness
	if id.Step == 0 && !w.cfg.Sync {
		for j, f := range w.finished {
			if f < e-1-bound {
				return fmt.Errorf("%v starts although interval %d has only finished epoch %d", id, j, f)
			}
		}
	}
	if id.Step == 0 && w.version < max(w.cfg.First, e-bound) {
		return fmt.Errorf("%v starts with weights %d", id, w.version)
	}
	st := w.cfg.Steps[id.Step]
	if st.Reads < 0 {
		return nil
	}
	for _, j := range st.Sources[id.Interval] {
		version, ok := p.received[[2]int{st.Reads, int(j)}]
		if !ok {
			return fmt.Errorf("%v reads rows of interval %d that nobody has made", id, j)
		}
		if w.cfg.Sync && version != e {
			return fmt.Errorf("%v reads rows of interval %d of epoch %d", id, j, version)
		}
		age := max(0, e-1-version)
		w.ages[age]++
		if age > bound {
			return fmt.Errorf("%v reads rows of interval %d of epoch %d: age %d, bound %d", id, j, version, age, bound)
		}
	}
	return nil
}

// atEnd checks that nobody was left waiting and that a second machine, told the
// same, says the same.
func (w *world) atEnd() error {
	if want := w.cfg.Intervals * (w.cfg.Epochs - w.cfg.First) * len(w.cfg.Steps); len(w.done) != want {
		var state string
		for _, p := range w.parts {
			state += p.m.String()
		}
		return fmt.Errorf("deadlock: %d tasks of %d are done\n%s", len(w.done), want, state)
	}
	for _, p := range w.parts {
		if !p.m.Finished() || p.m.MinFinished() != w.cfg.Epochs {
			return fmt.Errorf("partition %v: all is done but it says finished %v, %d epochs", p.own, p.m.Finished(), p.m.MinFinished())
		}
		again, err := New(p.cfg)
		if err != nil {
			return err
		}
		outputs := [][]task.Task{again.Start()}
		for _, in := range p.inputs {
			outputs = append(outputs, again.Step(in))
		}
		if !reflect.DeepEqual(outputs, p.outputs) {
			return fmt.Errorf("partition %v: the same inputs gave other tasks the second time", p.own)
		}
	}
	return nil
}

func describe(in Input) string {
	switch {
	case in.Done != nil:
		return "done " + in.Done.String()
	case in.Failed != nil:
		return "failed " + in.Failed.String()
	case in.Rows != nil:
		return fmt.Sprintf("rows %+v", *in.Rows)
	case in.Finished != nil:
		return fmt.Sprintf("finished %+v", *in.Finished)
	case in.Weights != nil:
		return fmt.Sprintf("weights %d", *in.Weights)
	case in.Allow != nil:
		return fmt.Sprintf("allow %d", *in.Allow)
	}
	return "stop"
}
