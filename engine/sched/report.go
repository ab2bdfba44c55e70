package sched

import (
	"fmt"
	"strings"

	"dorylus/engine/task"
)

// Finished says that no task is out and none will be issued any more: every own
// interval has run all epochs, or the machine was stopped.
func (m *Machine) Finished() bool {
	if m.running > 0 {
		return false
	}
	if m.stopped {
		return true
	}
	for i := range m.own {
		if m.own[i].epoch < m.cfg.Epochs {
			return false
		}
	}
	return true
}

// Late is the number of tasks that an Input.Idle would have run now.
func (m *Machine) Late() int {
	if !m.cfg.Fresh {
		return 0
	}
	late, bound := 0, m.bound()
	for _, i := range m.atGate {
		if m.own[i].epoch < bound {
			late++
		}
	}
	for i := range m.own {
		if m.own[i].late {
			late++
		}
	}
	return late
}

// Outstanding is the number of tasks issued that are neither done nor failed.
func (m *Machine) Outstanding() int { return m.running }

// Epoch is the epoch that an interval is in or waits to start, Config.Epochs when
// it has finished the last one. For another partition's interval it is the one
// after the newest that is known to be finished.
func (m *Machine) Epoch(interval int) int { return int(m.finished[interval]) + 1 }

// MinFinished is the number of epochs that all intervals of all partitions have
// finished, those before Config.First included.
func (m *Machine) MinFinished() int { return m.slowest + 1 }

// String has one line per own interval: its epoch and step, and what it does or
// waits for. It is what scenario files print and what a hang is explained with.
func (m *Machine) String() string {
	var b strings.Builder
	for i := range m.own {
		fmt.Fprintf(&b, "i%d %s\n", m.cfg.Own.Lo+i, m.line(i))
	}
	return b.String()
}

// line says where own interval i stands.
func (m *Machine) line(i int) string {
	p := &m.own[i]
	if p.epoch == m.cfg.Epochs {
		return "done"
	}
	st := &m.cfg.Steps[p.step]
	t := task.Task{Kind: st.Kind, Dir: st.Dir, Layer: st.Layer}
	where := fmt.Sprintf("e%d s%d %s%d", p.epoch, p.step, t.Name(), t.Layer)
	switch {
	case p.issued:
		return where + " running"
	case m.stopped:
		return where + " stopped"
	case p.step == 0:
		return where + " waits for " + m.gate(p.epoch)
	}
	src, wants := m.missing(i), "needs"
	need := m.need(p.epoch)
	if p.late {
		need, wants = p.epoch, "may run, but would rather have"
	}
	return fmt.Sprintf("%s waits for rows of i%d: has epoch %d of step %d, %s %d",
		where, src, m.published[st.Reads][src], st.Reads, wants, need)
}

// gate says what keeps epoch e from starting.
func (m *Machine) gate(e int) string {
	var why []string
	if e >= m.limit {
		why = append(why, fmt.Sprintf("leave to start epoch %d", e))
	}
	version := e
	if !m.cfg.Sync {
		version = e - m.ahead
		if m.slowest < e-1-m.ahead {
			j := 0
			for int(m.finished[j]) != m.slowest {
				j++
			}
			why = append(why, fmt.Sprintf("i%d to finish epoch %d", j, e-1-m.ahead))
		}
	}
	if m.weights < version {
		why = append(why, fmt.Sprintf("weights %d: has %d", version, m.weights))
	} else if why == nil && m.cfg.Fresh && m.weights < e {
		why = append(why, fmt.Sprintf("weights %d or an idle core: has %d", e, m.weights))
	}
	if why == nil {
		return "Start"
	}
	return strings.Join(why, ", ")
}
