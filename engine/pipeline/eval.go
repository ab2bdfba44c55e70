package pipeline

import (
	"math"

	"dorylus/engine"
	"dorylus/engine/metric"
	"dorylus/engine/sched"
	"dorylus/kernels"
)

// Roles of a vertex in a split.
const (
	roleNone = iota
	roleTrain
	roleVal
	roleTest
	roles
)

// evaluator walks all rows forward, without dropout, and scores the logits. It
// runs one evaluation at a time.
type evaluator struct {
	pass    *pass
	machine *sched.Machine
	runs    int // evaluations started

	role   []uint8 // by store row
	labels []int32
	class  []int32 // predicted, by store row
	parts  []tally // by block
}

// tally is what one block adds to an evaluation.
type tally struct {
	right, rows [roles]int64
	valLoss     float64
}

// score predicts and counts the rows of a finished interval, block by block.
func (ev *evaluator) score(p *pass, interval int) {
	out := p.full[p.prog.Output]
	level := p.prog.Levels - 1
	r := p.intervals[interval]
	for b := r.Lo; b < r.Hi; b++ {
		var t tally
		span := p.plan.Levels[level].Block(b)
		for v := span.Lo; v < span.Hi; v++ {
			row := out.Row(v)
			best := metric.Argmax(row)
			ev.class[v] = best
			role := ev.role[v]
			if role == roleNone {
				continue
			}
			t.rows[role]++
			if best == ev.labels[v] {
				t.right[role]++
			}
			if role == roleVal {
				t.valLoss += xent(row, int(ev.labels[v]))
			}
		}
		ev.parts[b] = t
	}
}

// xent is -log softmax(row)[label].
func xent(row []float32, label int) float64 {
	top := float64(row[metric.Argmax(row)])
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	return math.Log(sum) + top - float64(row[label])
}

// result sums the blocks, in block order.
func (ev *evaluator) result(epoch int) engine.Evaluated {
	var all tally
	for _, t := range ev.parts {
		for r := range roles {
			all.right[r] += t.right[r]
			all.rows[r] += t.rows[r]
		}
		all.valLoss += t.valLoss
	}
	share := func(r int) float64 {
		if all.rows[r] == 0 {
			return math.NaN()
		}
		return float64(all.right[r]) / float64(all.rows[r])
	}
	return engine.Evaluated{
		Epoch: epoch, Metric: "accuracy",
		Train: share(roleTrain), Val: share(roleVal), Test: share(roleTest),
		ValLoss: all.valLoss / float64(all.rows[roleVal]),
	}
}

// logits copies the output rows to the user's order: N x classes.
func (ev *evaluator) logits(order []int32) *kernels.Mat {
	src := ev.pass.full[ev.pass.prog.Output]
	dst := kernels.FromSlice(src.Rows, src.Cols, make([]float32, src.Rows*src.Cols))
	for v := range src.Rows {
		copy(dst.Row(int(order[v])), src.Row(v))
	}
	return dst
}
