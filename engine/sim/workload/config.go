package workload

import (
	"dorylus/engine/sched"
	"dorylus/engine/sim"
)

// Pace is how fast servers work.
type Pace struct {
	PerUnit []float64 // seconds, by Workload.Keys
	// Task is what every task takes besides, in seconds of its core.
	Task  float64
	Cores int // of each server
	// Slots is the number of remote workers of each server, PerUnitAway their seconds.
	Slots       int
	PerUnitAway []float64
}

// Servers are the graph servers of a simulation.
func (w *Workload) Servers(p Pace) []sim.Server {
	out := make([]sim.Server, len(w.Parts))
	for rank := range w.Parts {
		part := &w.Parts[rank]
		s := sim.Server{Cores: p.Cores, Slots: p.Slots, Own: part.Own, Push: part.Push}
		for i := range w.Steps {
			step := &w.Steps[i]
			s.Steps = append(s.Steps, sched.Step{
				Kind: step.Kind, Dir: step.Dir, Layer: step.Layer, Reads: step.Reads, Publishes: step.Publish >= 0, Sources: part.Sources[i],
			})
		}
		for i, tasks := range part.Tasks {
			list := make([]sim.Task, len(tasks))
			for k, amounts := range tasks {
				x := part.Remote[i][k]
				t := &list[k]
				*t = sim.Task{Send: part.Sends[i][k], Remote: x.Remote, Down: x.Down, Up: x.Up}
				switch {
				case x.Remote:
					t.Seconds = p.Task + amounts.Seconds(p.PerUnitAway)
				case w.Steps[k].Publish >= 0 && len(amounts) == 0: // a note to the scheduler
				default:
					t.Seconds = p.Task + amounts.Seconds(p.PerUnit)
				}
			}
			s.Tasks = append(s.Tasks, list)
		}
		out[rank] = s
	}
	return out
}
