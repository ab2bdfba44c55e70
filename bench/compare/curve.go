package compare

import (
	"math"

	"dorylus/engine"
	"dorylus/engine/cost"
)

// Point is an evaluation.
type Point struct {
	Seconds float64 // of the run so far
	USD     float64 // its bill so far; NaN where something has no price
	Metric  float64
}

// Curve is the evaluations of one run, in order, and the run's end: a Point with the
// last metric, but with all that had to be paid.
type Curve []Point

// Recorder draws curves from the events of runs that follow each other. The zero
// Recorder is ready.
type Recorder struct {
	// Of says what is on the curves: "validation accuracy"; "" before an evaluation.
	Of string

	curves []Curve
	rows   string // of which the metric is taken
	meter  cost.Meter
}

// Curves has one curve for each run that has begun.
func (r *Recorder) Curves() []Curve {
	r.end()
	return r.curves
}

// Event implements engine.Listener.
func (r *Recorder) Event(e engine.Event) {
	if _, ok := e.(engine.RunStart); ok {
		r.end()
		r.meter = cost.Meter{}
	}
	r.meter.Event(e)
	switch e := e.(type) {
	case engine.RunStart:
		r.curves = append(r.curves, nil)
		r.rows = "training"
		switch {
		case e.ValRows > 0:
			r.rows = "validation"
		case e.TestRows > 0:
			r.rows = "test"
		}
	case engine.Evaluated:
		if len(r.curves) > 0 {
			r.add(e)
		}
	}
}

func (r *Recorder) add(e engine.Evaluated) {
	metric := e.Train
	switch r.rows {
	case "validation":
		metric = e.Val
	case "test":
		metric = e.Test
	}
	last := &r.curves[len(r.curves)-1]
	*last = append(*last, r.now(metric))
	r.Of = r.rows + " " + metricName(e.Metric)
}

// now is a point with all that has been spent.
func (r *Recorder) now(metric float64) Point {
	p := Point{Seconds: r.meter.Seconds(), USD: math.NaN(), Metric: metric}
	if total, known := r.meter.Bill().Total(); known {
		p.USD = total.USD()
	}
	return p
}

// end closes the latest curve. Invocations may be billed after a run has ended.
func (r *Recorder) end() {
	if len(r.curves) == 0 {
		return
	}
	curve := &r.curves[len(r.curves)-1]
	if n := len(*curve); n > 0 {
		last := (*curve)[n-1]
		if p := r.now(last.Metric); p.Seconds > last.Seconds || p.USD > last.USD {
			*curve = append(*curve, p)
		}
	}
}

// metricName is a metric for people.
func metricName(name string) string {
	switch name {
	case "":
		return "accuracy"
	case "roc-auc":
		return "ROC-AUC"
	case "micro-f1":
		return "micro-F1"
	case "macro-f1":
		return "macro-F1"
	}
	return name
}
