package pipeline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"dorylus/engine"
	"dorylus/engine/task"
)

// late stops the run when all have ended training.
type late struct{ engine.Group }

func (l late) Gather(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	if key == "the end" {
		l.Stop("interrupted")
	}
	return l.Group.Gather(ctx, key, mine)
}

// A wish to stop that comes after the last epoch changes nothing: there is nothing left to
// save, and the predictions are made.
func TestAStopAfterTrainingIsTooLate(t *testing.T) {
	j := trainPartitioned(t, partitioned{parts: 3, group: func(g engine.Group) engine.Group { return late{g} }}, func() Options { return options(t) })
	if j.Reason != "epochs" || j.Logits == nil {
		t.Errorf("ended %q, logits %v, want all epochs and predictions", j.Reason, j.Logits != nil)
	}
}

// counting counts events without a lock, as sinks do.
type counting struct {
	engine.Listener
	n int
}

func (c *counting) Event(e engine.Event) {
	c.n++
	c.Listener.Event(e)
}

// What Stop looks at is what the events have made, so it is asked between them (the race
// detector tells).
func TestStopIsAskedBetweenEvents(t *testing.T) {
	asked, seen := 0, 0
	trainPartitioned(t, partitioned{parts: 2}, func() Options {
		return options(t, func(o *Options) {
			o.Config.Pipeline, o.Config.Staleness = "async", 2
			c := &counting{Listener: o.Listener}
			o.Listener, o.Stop = c, func() string { asked, seen = asked+1, c.n; return "" }
		})
	})
	if asked == 0 || seen == 0 {
		t.Error("nobody was asked")
	}
}

func TestRowsOfTheLastBlockEndBeyondInt32(t *testing.T) {
	list := []int32{5, math.MaxInt32 - 1}
	if got := within(list, task.Range{Lo: math.MaxInt32 - 4, Hi: math.MaxInt32 + 60}); len(got) != 1 || got[0] != list[1] {
		t.Errorf("%v of %v, want the last", got, list)
	}
}

// What others spend reaches server 0 with each evaluation, not only in the end.
func TestSpendingIsHeardOfWhileTheRunGoesOn(t *testing.T) {
	var heard []string
	trainPartitioned(t, partitioned{parts: 3, tune: func(c *Cluster) {
		rank := c.Group.Rank()
		n := 0
		c.Spent = func() ([]byte, error) { n++; return fmt.Appendf(nil, "%d:%d", rank, n), nil }
		c.Hear = func(from int, bill []byte) error {
			heard = append(heard, fmt.Sprintf("%d %s", from, bill))
			return nil
		}
	}}, func() Options { return options(t, func(o *Options) { o.Config.Epochs = 2 }) })
	if want := []string{"1 1:1", "2 2:1", "1 1:2", "2 2:2"}; !slices.Equal(heard, want) {
		t.Errorf("server 0 has heard %q, want %q", heard, want)
	}
}
