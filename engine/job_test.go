package engine

import (
	"testing"

	"dorylus/engine/model"
)

// A partition counts the intervals that have blocks here, in each pass.
func TestJobOwn(t *testing.T) {
	j := &Job{Intervals: [Passes]int{7, 5}, Blocks: func(p Pass, i int) []*model.Ctx {
		if p == Training && i >= 2 && i < 5 {
			return []*model.Ctx{{}}
		}
		return nil
	}}
	if got := [Passes]int{j.Own(Training), j.Own(Evaluation)}; got != [Passes]int{3, 0} {
		t.Errorf("own intervals %v, want 3 and 0", got)
	}
}
