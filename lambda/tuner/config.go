package tuner

import (
	"errors"
	"fmt"
	"time"
)

// MostAtStart bounds the number of workers a run starts with.
const MostAtStart = 100

// Config is what a tuner is told of the run. Zero values mean the defaults.
type Config struct {
	// Intervals is how many of them a training epoch has here. An interval has one
	// task under way at most, so more workers than intervals are of no use.
	Intervals int
	// Cores are the graph server's workers for graph tasks.
	Cores int
	// PerEpoch is how many tensor tasks a training epoch has; a decision rests on that
	// many, so that all kinds of tasks are in it. Default: two for each interval.
	PerEpoch int
	// Start is the first number of workers. Default: the intervals, 100 at most.
	Start int
	// Min and Max are bounds. Defaults: 1, and the intervals.
	Min, Max int
	// Fixed, if not 0, is the number of workers, whatever happens.
	Fixed int
	// Window is the least time that a decision rests on. Default: one second.
	Window time.Duration
	// Pause is how long the tuner holds still after a launch was refused for too many
	// requests, the first time; it doubles with each refusal that follows an attempt to
	// have more. Default: five seconds.
	Pause time.Duration
}

func (c Config) withDefaults() Config {
	set := func(x *int, to int) {
		if *x == 0 {
			*x = to
		}
	}
	set(&c.PerEpoch, 2*c.Intervals)
	set(&c.Min, 1)
	set(&c.Max, max(c.Intervals, c.Min))
	set(&c.Start, min(max(min(c.Intervals, MostAtStart), c.Min), c.Max))
	if c.Window == 0 {
		c.Window = time.Second
	}
	if c.Pause == 0 {
		c.Pause = 5 * time.Second
	}
	return c
}

// Validate reports all that is wrong.
func (c Config) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("tune the number of workers: "+format, args...))
		}
	}
	bad(c.Intervals < 1, "%d intervals: at least 1 is needed", c.Intervals)
	bad(c.Cores < 1, "%d cores: at least 1 is needed", c.Cores)
	bad(c.PerEpoch < 0, "%d tensor tasks in an epoch: give 0 or more", c.PerEpoch)
	bad(c.Fixed < 0, "%d workers: give 1 or more, or 0 to tune", c.Fixed)
	bad(c.Min < 0, "at least %d workers: give 0 or more", c.Min)
	bad(c.Max < 0, "at most %d workers: give 0 or more", c.Max)
	bad(c.Start < 0, "a start of %d workers: give 0 or more", c.Start)
	d := c.withDefaults()
	bad(d.Max < d.Min, "at least %d and at most %d workers: no number is both", d.Min, d.Max)
	bad(d.Max >= d.Min && c.Start > 0 && (c.Start < d.Min || c.Start > d.Max), "a start of %d workers is not within [%d, %d]", c.Start, d.Min, d.Max)
	bad(c.Window < 0, "a window of %v: give 0 or more", c.Window)
	bad(c.Pause < 0, "a pause of %v: give 0 or more", c.Pause)
	return errors.Join(errs...)
}
