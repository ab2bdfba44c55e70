package sched

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dorylus/engine/task"
	"dorylus/engine/testkit/dd"
)

// TestScenarios runs testdata/*.txt. The commands:
//
//	new intervals=N epochs=N [own=LO:HI] [sync] [fresh] [staleness=N] [first=N] [hold=N]
//	STEP [reads=S]                      one line per step; SC steps publish
//	neighbours 0:0,1 1:0,1,2            whom each interval gathers from
//
//	done ID... | failed ID...           tasks, written as the machine prints them: e0/i1/s2
//	run INTERVAL                        do all of its tasks until it is held up
//	rows i=J step=S epoch=E             another partition's rows have arrived
//	finished i=J epoch=E                another partition's interval is through
//	weights V | allow E | idle CORES | stop | state
//
// All but state print the tasks that are issued.
func TestScenarios(t *testing.T) {
	dd.Files(t, "testdata/*.txt", func(t *testing.T) func(*dd.Block) string {
		s := &scenario{}
		return func(b *dd.Block) string { return s.run(t, b) }
	})
}

type scenario struct {
	m   *Machine
	out []task.Task // issued and not done
}

func (s *scenario) run(t *testing.T, b *dd.Block) string {
	if b.Cmd == "new" {
		m, err := New(parseConfig(t, b))
		if err != nil {
			return err.Error()
		}
		s.m, s.out = m, nil
		return s.issued(m.Start())
	}
	var tasks []task.Task
	number := func(word string) *int {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("%s: %q is no number", b.Pos, word)
		}
		return &n
	}
	switch b.Cmd {
	case "state":
		return fmt.Sprintf("%sfinished by all: %d; out: %d; finished: %v", s.m, s.m.MinFinished(), s.m.Outstanding(), s.m.Finished())
	case "done", "failed":
		for _, w := range b.Words {
			var id task.ID
			if _, err := fmt.Sscanf(w, "e%d/i%d/s%d", &id.Epoch, &id.Interval, &id.Step); err != nil {
				t.Fatalf("%s: %q is no task", b.Pos, w)
			}
			if b.Cmd == "done" {
				s.out = slices.DeleteFunc(s.out, func(t task.Task) bool { return t.ID == id })
				tasks = append(tasks, s.m.Step(Input{Done: &id})...)
			} else {
				tasks = append(tasks, s.m.Step(Input{Failed: &id})...)
			}
		}
	case "run":
		return s.runInterval(*number(b.Words[0]))
	case "rows":
		tasks = s.m.Step(Input{Rows: &Rows{Interval: b.Int("i", -1), Step: b.Int("step", -1), Epoch: b.Int("epoch", -1)}})
	case "finished":
		tasks = s.m.Step(Input{Finished: &Finish{Interval: b.Int("i", -1), Epoch: b.Int("epoch", -1)}})
	case "weights":
		tasks = s.m.Step(Input{Weights: number(b.Words[0])})
	case "allow":
		tasks = s.m.Step(Input{Allow: number(b.Words[0])})
	case "idle":
		tasks = s.m.Step(Input{Idle: *number(b.Words[0])})
	case "stop":
		tasks = s.m.Step(Input{Stop: true})
	default:
		t.Fatalf("%s: unknown command %q", b.Pos, b.Cmd)
	}
	return s.issued(tasks)
}

// issued prints tasks and remembers them for "run".
func (s *scenario) issued(tasks []task.Task) string {
	s.out = append(s.out, tasks...)
	if len(tasks) == 0 {
		return "nothing"
	}
	var lines []string
	for _, t := range tasks {
		lines = append(lines, t.String())
	}
	return strings.Join(lines, "\n")
}

// runInterval does the tasks of one interval for as long as it has one.
func (s *scenario) runInterval(i int) string {
	var lines []string
	for n := 0; n < len(s.out); {
		id := s.out[n].ID
		if id.Interval != i {
			n++
			continue
		}
		s.out = append(s.out[:n], s.out[n+1:]...)
		lines = append(lines, fmt.Sprintf("done %v: %s", id, strings.ReplaceAll(s.issued(s.m.Step(Input{Done: &id})), "\n", ", ")))
		n = 0
	}
	return strings.Join(lines, "\n")
}

func parseConfig(t *testing.T, b *dd.Block) Config {
	c := Config{
		Intervals: b.Int("intervals", 1), Epochs: b.Int("epochs", 1), First: b.Int("first", 0),
		Staleness: b.Int("staleness", 0), Hold: b.Int("hold", 0),
	}
	c.Own = task.Range{Lo: 0, Hi: c.Intervals}
	if own, ok := b.Args["own"]; ok {
		if _, err := fmt.Sscanf(own, "%d:%d", &c.Own.Lo, &c.Own.Hi); err != nil {
			t.Fatalf("%s: own=%s: %v", b.Pos, own, err)
		}
	}
	for _, w := range b.Words {
		c.Sync = c.Sync || w == "sync"
		c.Fresh = c.Fresh || w == "fresh"
	}
	sources := make([][]int32, max(c.Intervals, 0))
	for _, line := range b.Input {
		f := strings.Fields(line)
		if f[0] == "neighbours" {
			for _, w := range f[1:] {
				who, list, _ := strings.Cut(w, ":")
				i, err := strconv.Atoi(who)
				if err != nil {
					t.Fatalf("%s: %q names no interval", b.Pos, w)
				}
				for _, x := range strings.Split(list, ",") {
					j, err := strconv.Atoi(x)
					if err != nil {
						t.Fatalf("%s: %q names no interval", b.Pos, w)
					}
					sources[i] = append(sources[i], int32(j))
				}
			}
			continue
		}
		st := Step{Reads: -1}
		name := f[0]
		if back, ok := strings.CutPrefix(name, "∇"); ok {
			st.Dir, name = task.Backward, back
		}
		for _, k := range []task.Kind{task.GA, task.AV, task.SC, task.AE} {
			if name[:2] == k.String() {
				st.Kind = k
			}
		}
		st.Layer, _ = strconv.Atoi(name[2:])
		st.Publishes = st.Kind == task.SC
		if len(f) > 1 {
			if _, err := fmt.Sscanf(f[1], "reads=%d", &st.Reads); err != nil {
				t.Fatalf("%s: %q: %v", b.Pos, line, err)
			}
		}
		c.Steps = append(c.Steps, st)
	}
	for s := range c.Steps {
		if c.Steps[s].Reads >= 0 && c.Own.Lo >= 0 && c.Own.Hi <= len(sources) {
			c.Steps[s].Sources = sources[c.Own.Lo:c.Own.Hi]
		}
	}
	return c
}
