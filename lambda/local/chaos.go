package local

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Chaos is a schedule of faults. Each probability lies in [0,1] and is drawn for
// every request on its own, from the seed and the number of the request alone:
// the n-th request to a service meets the same faults in every run.
type Chaos struct {
	Seed uint64
	// Crash kills the worker (SIGKILL) within Window of the call's start, or in place
	// of the reply if that comes earlier.
	Crash float64
	// Hang stops the worker in the same way; the call then ends by its timeout.
	Hang float64
	// SlowStart delays a cold start by Delay; a warm start is not slowed.
	SlowStart float64
	// Throttle answers 429 without running the call.
	Throttle float64
	// LoseReply runs the call and then breaks the caller's connection.
	LoseReply float64
	// LateReply holds the reply back for Delay.
	LateReply float64
	// DuplicateReply runs the call twice, in two environments at once and with the
	// same request id; the caller gets the first one's reply.
	DuplicateReply float64
	// ServerError answers 500 without running the call.
	ServerError float64
	// Delay is that of SlowStart and LateReply; default 2 s.
	Delay time.Duration
	// Window bounds when Crash and Hang strike; default 100 ms.
	Window time.Duration
	// Latency is how much later a graph server hears what a worker's own stream to it
	// carries. The service does not see that stream: who connects the two heeds it.
	Latency time.Duration
}

// probabilities lists the settings by name, in the order of their draws.
func (c *Chaos) probabilities() []setting {
	return []setting{
		{"crash", &c.Crash}, {"hang", &c.Hang}, {"slow-start", &c.SlowStart}, {"throttle", &c.Throttle},
		{"lose-reply", &c.LoseReply}, {"late-reply", &c.LateReply}, {"duplicate-reply", &c.DuplicateReply}, {"server-error", &c.ServerError},
	}
}

type setting struct {
	name string
	p    *float64
}

func (c Chaos) withDefaults() Chaos {
	if c.Delay == 0 {
		c.Delay = 2 * time.Second
	}
	if c.Window == 0 {
		c.Window = 100 * time.Millisecond
	}
	return c
}

// Validate returns every problem at once.
func (c Chaos) Validate() error {
	var all []error
	for _, s := range c.probabilities() {
		if !(*s.p >= 0 && *s.p <= 1) {
			all = append(all, fmt.Errorf("chaos: %s=%v is no probability, must be in 0..1", s.name, *s.p))
		}
	}
	if c.Delay < 0 || c.Window < 0 || c.Latency < 0 {
		all = append(all, fmt.Errorf("chaos: delay %v, window %v and latency %v must not be below 0", c.Delay, c.Window, c.Latency))
	}
	return errors.Join(all...)
}

// ParseChaos reads a schedule such as "seed=7,crash=0.1,late-reply=0.05,delay=1s".
func ParseChaos(text string) (Chaos, error) {
	var c Chaos
	if strings.TrimSpace(text) == "" {
		return c, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return Chaos{}, fmt.Errorf("chaos: %q is not NAME=VALUE", part)
		}
		if err := c.set(name, value); err != nil {
			return Chaos{}, fmt.Errorf("chaos: %s: %w", name, err)
		}
	}
	return c, c.Validate()
}

func (c *Chaos) set(name, value string) (err error) {
	switch name {
	case "seed":
		c.Seed, err = strconv.ParseUint(value, 10, 64)
		return err
	case "delay":
		c.Delay, err = time.ParseDuration(value)
		return err
	case "latency":
		c.Latency, err = time.ParseDuration(value)
		return err
	case "window":
		c.Window, err = time.ParseDuration(value)
		return err
	}
	names := make([]string, 0, 8)
	for _, s := range c.probabilities() {
		if s.name == name {
			*s.p, err = strconv.ParseFloat(value, 64)
			return err
		}
		names = append(names, s.name)
	}
	return fmt.Errorf("no such fault; there are seed, delay, window, latency, %s", strings.Join(names, ", "))
}

// faults are what the schedule holds for one request.
type faults struct {
	crash, hang, slowStart, throttle, lose, late, duplicate, serverError bool
	strike                                                               time.Duration // when crash or hang happens after the call's start
}

// at draws the faults of the n-th request.
func (c *Chaos) at(n uint64) faults {
	var f faults
	into := []*bool{&f.crash, &f.hang, &f.slowStart, &f.throttle, &f.lose, &f.late, &f.duplicate, &f.serverError}
	for i, s := range c.probabilities() {
		*into[i] = uniform(c.Seed, n, uint64(i)) < *s.p
	}
	f.strike = time.Duration(uniform(c.Seed, n, 100) * float64(c.Window))
	return f
}

// uniform is a number in [0,1) that depends on its arguments alone.
func uniform(seed, n, kind uint64) float64 {
	x := mix(mix(mix(seed)+n) + kind)
	return float64(x>>11) / (1 << 53)
}

// mix is the output function of SplitMix64 after one step.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
