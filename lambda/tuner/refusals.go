package tuner

import (
	"fmt"
	"time"
)

// refusals is what is known of the service's limit: launches beyond it are refused
// (429, too many requests), and others than this run may use it up.
type refusals struct {
	seen    int64         // refusals counted so far
	ceiling int           // most workers for now; 0: no limit is known
	goal    int           // what was wanted before; above ceiling
	last    time.Duration // when the last refusal or raise was
	cut     time.Duration // when the last cut was
	raised  time.Duration // when the ceiling was last raised; 0: never
	vain    int           // raises in a row that were refused
}

// pause is how long no refusal must come until the ceiling is raised.
func (r *refusals) pause(c *Config) time.Duration { return c.Pause << min(r.vain, 5) }

// throttled backs off from a limit, and feels for it when it has been quiet for a
// while. It returns the number of workers and why, or "".
func (r *refusals) throttled(s Sample, want int, c *Config) (int, string) {
	refused := s.Refused - r.seen
	r.seen = s.Refused
	switch {
	case refused > 0:
		return r.backOff(s, want, c)
	case r.ceiling > 0 && s.At >= r.last+r.pause(c):
		return r.raise(s, want, c)
	}
	return want, ""
}

func (r *refusals) backOff(s Sample, want int, c *Config) (int, string) {
	quiet := s.At - r.last
	again := r.raised > 0 && s.At-r.raised < 2*r.pause(c)
	r.last = s.At
	if r.ceiling > 0 && !again && s.At < r.cut+c.Pause {
		return want, "" // these were sent before the cut
	}
	switch {
	case again:
		r.vain++
	case quiet > 4*r.pause(c):
		r.vain = 0
	}
	r.raised, r.cut = 0, s.At
	r.goal = max(want, r.goal)
	r.ceiling = max(c.Min, min(max(s.Workers, want/2), want-1))
	if r.ceiling >= want {
		return want, ""
	}
	return r.ceiling, fmt.Sprintf("the service refuses more while %d are there: back off", s.Workers)
}

// raise doubles the ceiling; after one that was in vain by a quarter, then by one.
func (r *refusals) raise(s Sample, want int, c *Config) (int, string) {
	old := r.ceiling
	switch r.vain {
	case 0:
		r.ceiling *= 2
	case 1:
		r.ceiling += max(1, r.ceiling/4)
	default:
		r.ceiling++
	}
	quiet := r.pause(c)
	if r.raised > 0 { // the last one has been granted
		r.vain /= 2
	}
	r.last, r.raised = s.At, s.At
	goal := r.goal
	if r.ceiling >= goal {
		r.ceiling, r.goal = 0, 0
	}
	if want < old { // the load itself wants no more
		return want, ""
	}
	to := goal
	if r.ceiling > 0 {
		to = r.ceiling
	}
	return to, fmt.Sprintf("no refusal for %v: see whether more are granted", quiet)
}
