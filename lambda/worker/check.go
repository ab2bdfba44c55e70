package worker

import (
	"fmt"
	"slices"

	"dorylus/engine/model"
	"dorylus/lambda/wire"
)

// check refuses a task of which something is not there: from here on every number in it
// is an index.
func (s *session) check(run *running) error {
	if len(run.Steps) == 0 {
		return fmt.Errorf("it has no steps")
	}
	for i := range run.Steps {
		st := &run.Steps[i]
		if err := s.checkStep(run, st); err != nil {
			return err
		}
		for _, b := range st.Blocks {
			if b < 0 || b >= run.room.Blocks() {
				return fmt.Errorf("block %d of %d", b, run.room.Blocks())
			}
		}
		for _, f := range st.Found {
			if err := s.known(st.Step, f); err != nil {
				return err
			}
		}
		if err := s.checkParams(run, st); err != nil {
			return err
		}
		if err := checkSums(run, st); err != nil {
			return err
		}
	}
	return nil
}

// checkStep checks a step and its buffers against the model and the room.
func (s *session) checkStep(run *running, st *wire.Step) error {
	prog := s.w.prog
	if st.Step < 0 || st.Step >= len(prog.Steps) || !prog.Steps[st.Step].Kind.Tensor() {
		return fmt.Errorf("step %d is no tensor step of the model", st.Step)
	}
	if !run.room.Train && st.Step >= prog.Forward {
		return fmt.Errorf("step %d is none of an evaluation: that has %d", st.Step, prog.Forward)
	}
	step := &prog.Steps[st.Step]
	for _, b := range slices.Concat(step.In, step.Out) {
		if run.room.Full[b] == nil && !(b == model.X && run.room.Sparse != nil) {
			return fmt.Errorf("step %d works on buffer %d, which has no memory here", st.Step, b)
		}
	}
	for _, b := range st.Ships {
		if !slices.Contains(step.Out, b) || prog.Bufs[b].Edges {
			return fmt.Errorf("step %d has no rows of buffer %d to give", st.Step, b)
		}
	}
	return nil
}

// checkParams checks that a step has the weights that it reads, and no other gradients
// than its own are wanted.
func (s *session) checkParams(run *running, st *wire.Step) error {
	step := &s.w.prog.Steps[st.Step]
	for _, p := range step.Params {
		if run.weights[p] == nil {
			return fmt.Errorf("step %d reads parameter %d, which is not among the task's", st.Step, p)
		}
	}
	for i, p := range st.Grads {
		if slices.Contains(st.Grads[:i], p) {
			return fmt.Errorf("step %d is asked twice for the gradient of parameter %d", st.Step, p)
		}
		if !run.room.Train || !slices.Contains(step.Grads, p) {
			return fmt.Errorf("step %d has no gradient of parameter %d", st.Step, p)
		}
	}
	return nil
}

// checkSums checks that each block of which a gradient is wanted is in one run, and comes
// in order.
func checkSums(run *running, st *wire.Step) error {
	if len(st.Grads) == 0 {
		return nil
	}
	at := 0
	for _, end := range st.Sums {
		if end <= at || end > run.room.Blocks() {
			return fmt.Errorf("step %d has a run of blocks [%d,%d) of %d", st.Step, at, end, run.room.Blocks())
		}
		at = end
	}
	if at != run.room.Blocks() {
		return fmt.Errorf("step %d has runs of %d of %d blocks", st.Step, at, run.room.Blocks())
	}
	for i := 1; i < len(st.Blocks); i++ {
		if st.Blocks[i] <= st.Blocks[i-1] {
			return fmt.Errorf("step %d has block %d behind block %d", st.Step, st.Blocks[i], st.Blocks[i-1])
		}
	}
	return nil
}

// known refuses a buffer that the step does not work on or that no step sets.
func (s *session) known(step int, f wire.Found) error {
	of := &s.w.prog.Steps[step]
	if !slices.Contains(of.In, f.Buf) && !slices.Contains(of.Out, f.Buf) || s.w.prog.Bufs[f.Buf].Const {
		return fmt.Errorf("step %d needs no rows of buffer %d", step, f.Buf)
	}
	if f.Writer < 0 || f.Writer >= len(s.w.prog.Steps) || !slices.Contains(s.w.prog.Steps[f.Writer].Out, f.Buf) {
		return fmt.Errorf("buffer %d is not set by step %d", f.Buf, f.Writer)
	}
	return nil
}
