package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
)

// settled is where the autotuner has come to rest in a scenario of virtual time.
type settled struct {
	Scenario string  `json:"scenario"`
	Barriers bool    `json:"barriers"` // epochs wait for all intervals, as in a sync run
	Seed     uint64  `json:"seed"`
	Start    int     `json:"start"`   // workers at first
	Workers  float64 `json:"workers"` // wanted, the mean of the time that is watched
	Lo       int     `json:"least"`
	Hi       int     `json:"most"`
	Rate     float64 `json:"tasks_per_second"`
	// Best is the rate with a worker for each interval.
	Best float64 `json:"tasks_per_second_at_most"`
}

// settledKey is the attribute under which the tuner's test tells each one.
const settledKey = "settled"

// tuner has the tuner's own test play its scenarios, and keeps what that tells.
func (r *report) tuner(*lab) error {
	cmd := exec.Command("go", "test", "-json", "-count=1", "-run=^TestSettles$", "./lambda/tuner")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%v: %w: %s%s", cmd.Args, err, errs.Bytes(), out[max(0, len(out)-2000):])
	}
	if r.Tuner, err = parseSettled(out); err != nil {
		return err
	}
	for _, barriers := range []bool{false, true} {
		for _, scenario := range []string{"slow tasks", "slow network"} {
			r.near(scenario, barriers)
		}
	}
	return nil
}

// near compares where a scenario's starts of 1 and of 32 workers have led.
func (r *report) near(scenario string, barriers bool) {
	mean := map[int]float64{}
	count := map[int]float64{}
	band := 0
	for _, s := range r.Tuner {
		if s.Scenario == scenario && s.Barriers == barriers {
			mean[s.Start] += s.Workers
			count[s.Start]++
			band = max(band, s.Hi-s.Lo)
		}
	}
	one, many := mean[1]/count[1], mean[32]/count[32]
	when := "async"
	if barriers {
		when = "sync"
	}
	r.most("autotuner", fmt.Sprintf("%s, %s: workers wanted from 1, and from 32: how far apart", scenario, when), math.Abs(one-many)/max(one, many), 0.35,
		fmt.Sprintf("%.1f and %.1f; it still moves by %d at most", one, many, band))
}

// parseSettled reads the output of go test -json.
func parseSettled(out []byte) ([]settled, error) {
	var all []settled
	for line := range bytes.Lines(out) {
		var e struct{ Action, Key, Value string }
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read what the tuner's test tells: %w in %q", err, line)
		}
		if e.Action != "attr" || e.Key != settledKey {
			continue
		}
		var s settled
		if err := json.Unmarshal([]byte(e.Value), &s); err != nil {
			return nil, fmt.Errorf("read what the tuner's test tells: %w in %q", err, e.Value)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the tuner's test has told no %q", settledKey)
	}
	return all, nil
}
