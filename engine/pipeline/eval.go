package pipeline

import (
	"fmt"
	"math"
	"slices"

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

	cluster *Cluster     // nil: this process computes all rows
	own     *kernels.Mat // the logits of this partition's rows, in host memory: those of the pass, or a copy
	logits  *kernels.Mat // of all rows of the store, where this process has them

	metric string // what Evaluated.Train, Val and Test are
	truth  metric.Truth
	role   []uint8 // by store row
	rows   [roles][]int32
	parts  []tally // by block
}

// tally is what one block adds to an evaluation.
type tally struct {
	right, rows [roles]int64
	valLoss     float64
}

// score predicts and counts the rows of a finished interval, block by block.
func (ev *evaluator) score(s kernels.Stream, p *pass, interval int) error {
	out := ev.own
	level := &p.plan.Levels[p.prog.Levels-1]
	r := p.intervals[interval]
	if made := p.full[p.prog.Output]; made != out {
		rows := level.Span(r)
		s.Copy(out.Sub(rows), made.Sub(rows))
		if err := s.Wait(); err != nil {
			return fmt.Errorf("read the logits: %w", err)
		}
	}
	for b := r.Lo; b < r.Hi; b++ {
		var t tally
		span := level.Block(b)
		for i := span.Lo; i < span.Hi; i++ {
			v := level.Store(i)
			role := ev.role[v]
			if role == roleNone {
				continue
			}
			row := out.Row(i)
			t.rows[role]++
			if ev.truth.Sets == nil && metric.Argmax(row) == ev.truth.Labels[v] {
				t.right[role]++
			}
			if role == roleVal {
				t.valLoss += ev.loss(row, v)
			}
		}
		ev.parts[b] = t
	}
	return nil
}

// rowsOf are rows of a buffer of the pass in host memory, which may be those of the pass.
func (ev *evaluator) rowsOf(buf int, rows kernels.Span) (*kernels.Mat, error) {
	m := ev.pass.full[buf].Sub(rows)
	if m.Host != nil || rows.Len() == 0 {
		return m, nil
	}
	s, err := ev.pass.dev.NewStream()
	if err != nil {
		return nil, err
	}
	some := kernels.FromSlice(m.Rows, m.Cols, make([]float32, m.Rows*m.Cols))
	s.Copy(some, m)
	return some, s.Close()
}

// loss is the cross-entropy of one row: softmax, or the mean over classes of the
// binary ones.
func (ev *evaluator) loss(row []float32, v int32) float64 {
	if sets := ev.truth.Sets; sets != nil {
		sum := 0.0
		has := sets.Col[sets.RowPtr[v]:sets.RowPtr[v+1]]
		for c, z := range row {
			x := float64(z)
			if _, y := slices.BinarySearch(has, int32(c)); y {
				x = -x
			}
			sum += max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
		}
		return sum / float64(len(row))
	}
	top := float64(row[metric.Argmax(row)])
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	return math.Log(sum) + top - float64(row[ev.truth.Labels[v]])
}

// result sums the blocks, in block order. A metric that is no sum over rows is
// computed from all logits.
func (ev *evaluator) result(epoch int) (engine.Evaluated, error) {
	var all tally
	for _, t := range ev.parts {
		for r := range roles {
			all.right[r] += t.right[r]
			all.rows[r] += t.rows[r]
		}
		all.valLoss += t.valLoss
	}
	e := engine.Evaluated{Epoch: epoch, Metric: ev.metric, ValLoss: all.valLoss / float64(all.rows[roleVal])}
	for _, x := range []struct {
		role            int
		value, accuracy *float64
	}{{roleTrain, &e.Train, &e.TrainAcc}, {roleVal, &e.Val, &e.ValAcc}, {roleTest, &e.Test, &e.TestAcc}} {
		if ev.metric == "accuracy" && ev.truth.Sets == nil {
			*x.value = math.NaN()
			if n := all.rows[x.role]; n > 0 {
				*x.value = float64(all.right[x.role]) / float64(n)
			}
			continue
		}
		value, accuracy, err := metric.Measure(ev.metric, ev.logits, ev.truth, ev.rows[x.role])
		if err != nil {
			return e, err
		}
		if x.role == roleVal && math.IsNaN(value) && len(ev.rows[roleVal]) > 0 {
			return e, fmt.Errorf("evaluate after epoch %d: %s is not defined on the %d validation vertices, for example since all have one class: choose another --metric or split",
				epoch+1, ev.metric, len(ev.rows[roleVal]))
		}
		*x.value = value
		if ev.metric != "accuracy" {
			*x.accuracy = accuracy
		}
	}
	return e, nil
}

// classes counts the test rows by class, for the report.
func (ev *evaluator) classes(epoch int, names []string) (engine.Classes, error) {
	out := engine.Classes{Epoch: epoch, Names: names}
	logits, rows := ev.logits, ev.rows[roleTest]
	if ev.truth.Sets != nil {
		m, err := metric.CountSets(logits, ev.truth.Sets, rows)
		if err != nil {
			return out, err
		}
		out.TP, out.FP, out.FN, out.Exact, out.Rows = m.TP, m.FP, m.FN, m.Exact, m.Rows
		return out, nil
	}
	m, err := metric.Confuse(logits, ev.truth.Labels, rows, logits.Cols)
	if err != nil {
		return out, err
	}
	out.Confusion = m.N
	for _, row := range m.N {
		for _, n := range row {
			out.Rows += n
		}
	}
	return out, nil
}

// userOrder copies rows of the store to the user's order.
func userOrder(src *kernels.Mat, order []int32) *kernels.Mat {
	dst := kernels.FromSlice(src.Rows, src.Cols, make([]float32, src.Rows*src.Cols))
	for v := range src.Rows {
		copy(dst.Row(int(order[v])), src.Row(v))
	}
	return dst
}

// rest brings the machine between two evaluations, if one was broken off.
func (ev *evaluator) rest() error {
	if ev.machine.MinFinished() == ev.runs {
		return nil
	}
	return ev.schedule(ev.runs)
}

// schedule starts a machine whose first evaluation has the number first.
func (ev *evaluator) schedule(first int) (err error) {
	p := ev.pass
	ev.machine, err = sched.New(sched.Config{
		Intervals: len(p.intervals), Own: p.own, Steps: p.schedule(),
		First: first, Epochs: math.MaxInt32 - 1, Sync: true, Hold: 1,
	})
	return err
}
