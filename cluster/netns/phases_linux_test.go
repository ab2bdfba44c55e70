package netns

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// phase is a part of an epoch, as graph server 0 sees it.
type phase int

const (
	forward phase = iota
	backward
	update
	evaluation
	phases
)

// String is its name.
func (p phase) String() string {
	return [...]string{"forward", "backward", "update", "evaluation", "no epoch"}[p]
}

// epoch is when the phases of an epoch end, and the first begins, since the start of the
// attempt. A phase of an epoch that was cut off has no end: 0.
type epoch [phases + 1]time.Duration

// attempt is what the events of a run say of one time that its servers were started.
type attempt struct {
	start  time.Time
	epochs []epoch
}

// at is the phase at a time.
func (a *attempt) at(when time.Time) phase {
	d := when.Sub(a.start)
	for _, e := range a.epochs {
		if d < e[0] {
			continue
		}
		for p := range phases {
			if end := e[p+1]; end == 0 || d < end {
				return p
			}
		}
	}
	return phases
}

// lasts is how long a phase takes, the median of the last epochs.
func (a *attempt) lasts(p phase) time.Duration {
	var all []time.Duration
	for _, e := range a.epochs[max(0, len(a.epochs)-6):] {
		if e[p+1] > 0 {
			all = append(all, e[p+1]-e[p])
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// attempts reads the events of a run that were written so far, with --task-events.
func (r *rig) attempts(t *testing.T, run string) []*attempt {
	t.Helper()
	data, err := os.ReadFile(r.path(run + "/events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*attempt
	var a *attempt
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var e struct {
			Event       string
			Time        time.Time
			Name        string
			Task        struct{ Epoch int }
			Start, Took time.Duration
			At          float64 `json:"at_seconds"`
		}
		if json.Unmarshal(in.Bytes(), &e) != nil {
			continue // the line on which the writer was killed
		}
		if e.Event == "run_start" {
			a = &attempt{start: e.Time}
			all = append(all, a)
		}
		if a == nil {
			continue
		}
		n := len(a.epochs)
		end := e.Start + e.Took
		switch {
		case e.Event == "epoch" && n > 0:
			a.epochs[n-1][update+1] = time.Duration(e.At * 1e9)
		case e.Event != "task" || e.Start == 0: // a scatter, which takes no time
		case strings.HasPrefix(e.Name, "eval"):
			if n > 0 {
				a.epochs[n-1][evaluation+1] = max(a.epochs[n-1][evaluation+1], end)
			}
		case n == 0 || a.epochs[n-1][update+1] > 0: // the first of an epoch
			a.epochs = append(a.epochs, epoch{e.Start})
			if n > 0 && a.epochs[n-1][evaluation+1] > 0 {
				a.epochs[n][forward] = a.epochs[n-1][evaluation+1]
			}
		case strings.Contains(e.Name, "∇"):
			if x := &a.epochs[n-1]; x[forward+1] == 0 {
				x[forward+1] = e.Start
			} else {
				x[backward+1] = max(x[backward+1], end)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no event of a start in %s", run)
	}
	return all
}
