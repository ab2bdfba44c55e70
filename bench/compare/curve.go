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

// Curve is the evaluations of one run, in order.
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
func (r *Recorder) Curves() []Curve { return r.curves }

// Event implements engine.Listener.
func (r *Recorder) Event(e engine.Event) {
	if _, ok := e.(engine.RunStart); ok {
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
	p := Point{Seconds: r.meter.Seconds(), USD: math.NaN(), Metric: e.Train}
	switch r.rows {
	case "validation":
		p.Metric = e.Val
	case "test":
		p.Metric = e.Test
	}
	if total, known := r.meter.Bill().Total(); known {
		p.USD = total.USD()
	}
	last := &r.curves[len(r.curves)-1]
	*last = append(*last, p)
	r.Of = r.rows + " " + metricName(e.Metric)
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
