package sink

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"dorylus/engine"
	"dorylus/engine/cost"
)

// Style of Progress.
type Style string

// Styles.
const (
	Plain  Style = "plain" // about twenty lines a run
	Line   Style = "line"  // one line that updates itself, for terminals
	JSONed Style = "json"  // one JSON object per epoch
	None   Style = "none"  // warnings only
)

// plainLines is about how many lines a run prints in style Plain.
const plainLines = 20

// redraw is the least time between two updates of a Line.
const redraw = 100 * time.Millisecond

// Progress shows a run while it goes on. Warnings and retries are shown in every
// style. It writes to what is usually standard error, and ignores write errors:
// there is nobody left to tell.
type Progress struct {
	// Columns is the width to which a Line is cut, so that it does not wrap. 0: none.
	Columns int
	// Brief shows one line per run in style Plain: for many runs in a row.
	Brief bool
	// Bill, if not nil, is what the run has cost so far, shown with every epoch.
	Bill func() cost.Bill

	w     io.Writer
	style Style
	now   func() time.Time

	start   engine.RunStart
	opened  bool
	onGPUs  bool              // it has been said on which
	pending *engine.EpochDone // not shown yet: its evaluation may follow
	skipped *engine.EpochDone // the latest epoch, if it was passed over
	eval    *engine.Evaluated // the latest
	times   []float64         // of the latest epochs, evaluation included
	since   time.Time         // when the previous epoch ended
	drawn   time.Time
	width   int // of the line on the screen
}

// NewProgress shows events on w.
func NewProgress(w io.Writer, style Style, now func() time.Time) *Progress {
	return &Progress{w: w, style: style, now: now}
}

// Event implements engine.Listener.
func (p *Progress) Event(e engine.Event) {
	switch e := e.(type) {
	case engine.RunStart:
		p.start, p.since = e, p.now()
		p.pending, p.skipped, p.eval, p.times = nil, nil, nil, nil
		p.onGPUs = p.onGPUs && p.Brief
		p.opening()
	case engine.EpochDone:
		p.flush(false)
		p.pending = &e
	case engine.Evaluated:
		p.eval = &e
		if p.pending != nil && p.pending.Epoch == e.Epoch {
			p.flush(p.isLast(e.Epoch))
		}
	case engine.Warned:
		p.note("warning: " + e.Message)
	case engine.GPUUsed:
		p.gpus(e)
	case engine.Retried:
		p.note(fmt.Sprintf("retry: %v, attempt %d: %s", e.Task, e.Attempt, e.Cause))
	case engine.OwnCores:
		p.note(fmt.Sprintf("own cores: %v, task %d that no worker does: %s", e.Task, e.Tasks, e.Cause))
	case engine.LambdasTuned:
		p.note(fmt.Sprintf("lambdas: %d -> %d workers: %s", e.Before, e.Workers, e.Why))
	case engine.Checkpointed:
		if p.style == Plain && e.Epoch < p.start.Epochs {
			p.note(fmt.Sprintf("checkpoint after epoch %d: %s, %s", e.Epoch, e.Path, size(e.Bytes)))
		}
	case engine.RunDone:
		p.flush(true)
		p.finish()
	}
}

func (p *Progress) isLast(epoch int) bool { return epoch+1 == p.start.Epochs }

// finish shows the last epoch of a run that ended early.
func (p *Progress) finish() {
	if e := p.skipped; e != nil {
		p.skipped = nil
		if p.style == Line {
			p.draw(p.describe(e))
		} else {
			fmt.Fprintln(p.w, p.describe(e))
		}
	}
	p.clear()
}

// opening says what is about to be trained.
func (p *Progress) opening() {
	if p.style != Plain && p.style != Line || p.Brief && p.opened {
		return
	}
	p.opened = true
	s := p.start
	from := ""
	if s.FirstEpoch > 0 {
		from = fmt.Sprintf(", going on after epoch %d", s.FirstEpoch)
	}
	fmt.Fprintf(p.w, "%s on %s: %s vertices, %s edges, %d features, %d classes; %s/%s/%s rows to train/validate/test\n",
		s.Model, s.Dataset, thousands(int64(s.Vertices)), thousands(s.Edges), s.Features, s.Classes,
		thousands(int64(s.TrainRows)), thousands(int64(s.ValRows)), thousands(int64(s.TestRows)))
	pipeline := s.Pipeline
	if s.Staleness > 0 {
		pipeline += fmt.Sprintf(" with staleness %d", s.Staleness)
	}
	fmt.Fprintf(p.w, "%d epochs%s, seed %d, %s parameters; %s mode on %s, %s, %d intervals, %d threads\n",
		s.Epochs, from, s.Seed, thousands(s.Parameters), s.Mode, s.Device, pipeline, s.Intervals, s.Threads)
}

// flush shows the pending epoch, if its turn has come or it is the last.
func (p *Progress) flush(last bool) {
	e := p.pending
	if e == nil {
		return
	}
	p.pending = nil
	p.timeEpoch()
	p.skipped = nil
	switch p.style {
	case Plain:
		every := (p.start.Epochs - p.start.FirstEpoch + plainLines - 1) / plainLines
		if due := (e.Epoch+1)%max(every, 1) == 0 || e.Epoch == p.start.FirstEpoch; last || due && !p.Brief {
			fmt.Fprintln(p.w, p.describe(e))
		} else {
			p.skipped = e
		}
	case Line:
		if now := p.now(); last || now.Sub(p.drawn) >= redraw {
			p.drawn = now
			p.draw(p.describe(e))
		} else {
			p.skipped = e
		}
	case JSONed:
		p.printJSON(e)
	}
}

// timeEpoch keeps the wall times of the latest epochs, for the ETA.
func (p *Progress) timeEpoch() {
	now := p.now()
	p.times = append(p.times, now.Sub(p.since).Seconds())
	p.since = now
	if len(p.times) > plainLines {
		p.times = p.times[1:]
	}
}

// describe is the line of epoch e.
func (p *Progress) describe(e *engine.EpochDone) string {
	var b strings.Builder
	if p.Brief {
		fmt.Fprintf(&b, "seed %d  ", p.start.Seed)
	}
	fmt.Fprintf(&b, "epoch %*d/%d  loss %.4f", len(fmt.Sprint(p.start.Epochs)), e.Epoch+1, p.start.Epochs, e.Loss)
	if p.eval != nil {
		if named(p.eval) {
			fmt.Fprintf(&b, "  %s", p.eval.Metric)
		}
		for _, a := range []struct {
			name string
			rows int
			x    float64
		}{{"train", p.start.TrainRows, p.eval.Train}, {"val", p.start.ValRows, p.eval.Val}, {"test", p.start.TestRows, p.eval.Test}} {
			if a.rows > 0 {
				fmt.Fprintf(&b, "  %s %.2f %%", a.name, 100*a.x)
			}
		}
		if p.eval.Epoch != e.Epoch {
			fmt.Fprintf(&b, " (of epoch %d)", p.eval.Epoch+1)
		}
	}
	fmt.Fprintf(&b, "  %s/epoch", seconds(Number(e.Took)))
	if owed, known := p.owed(); known {
		fmt.Fprintf(&b, "  %s", owed)
	}
	if left := p.start.Epochs - e.Epoch - 1; left > 0 {
		fmt.Fprintf(&b, "  %s left", seconds(Number(median(p.times)*float64(left))))
	}
	return b.String()
}

// named says that the numbers of an evaluation need the name of their metric.
func named(e *engine.Evaluated) bool { return e.Metric != "" && e.Metric != accuracy }

// owed is the cost so far, if it is known.
func (p *Progress) owed() (cost.Dollars, bool) {
	if p.Bill == nil {
		return 0, false
	}
	return p.Bill().Total()
}

// draw replaces the line on the screen.
func (p *Progress) draw(line string) {
	if r := []rune(line); p.Columns > 1 && len(r) >= p.Columns {
		line = string(r[:p.Columns-1])
	}
	n := len([]rune(line))
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", max(0, p.width-n)))
	p.width = n
}

// clear ends an unfinished line.
func (p *Progress) clear() {
	if p.width > 0 {
		fmt.Fprintln(p.w)
		p.width = 0
	}
}

// note prints a line of its own.
func (p *Progress) note(text string) {
	if p.style == JSONed {
		data, err := json.Marshal(map[string]string{"note": text})
		if err == nil {
			fmt.Fprintf(p.w, "%s\n", data)
		}
		return
	}
	p.clear()
	fmt.Fprintln(p.w, text)
}

// progressLine is what style JSONed prints per epoch; accuracies, and values of
// another metric, are those of the epoch's own evaluation.
type progressLine struct {
	Epoch  int     `json:"epoch"`
	Epochs int     `json:"epochs"`
	Loss   Number  `json:"loss"`
	Train  *Number `json:"train_acc,omitempty"`
	Val    *Number `json:"val_acc,omitempty"`
	Test   *Number `json:"test_acc,omitempty"`

	Metric      string  `json:"metric,omitempty"`
	TrainMetric *Number `json:"train_metric,omitempty"`
	ValMetric   *Number `json:"val_metric,omitempty"`
	TestMetric  *Number `json:"test_metric,omitempty"`

	Seconds Number  `json:"epoch_seconds"`
	Cost    *Number `json:"cost_usd,omitempty"`
}

func (p *Progress) printJSON(e *engine.EpochDone) {
	line := progressLine{Epoch: e.Epoch + 1, Epochs: p.start.Epochs, Loss: Number(e.Loss), Seconds: Number(e.Took)}
	if ev := p.eval; ev != nil && ev.Epoch == e.Epoch {
		train, val, test := Number(ev.Train), Number(ev.Val), Number(ev.Test)
		line.Train, line.Val, line.Test = &train, &val, &test
		if named(ev) {
			a, b, c := Number(ev.TrainAcc), Number(ev.ValAcc), Number(ev.TestAcc)
			line.Metric, line.TrainMetric, line.ValMetric, line.TestMetric = ev.Metric, &train, &val, &test
			line.Train, line.Val, line.Test = &a, &b, &c
		}
	}
	if owed, known := p.owed(); known {
		usd := Number(owed.USD())
		line.Cost = &usd
	}
	if data, err := json.Marshal(line); err == nil {
		fmt.Fprintf(p.w, "%s\n", data)
	}
}
