// Package cost turns what a run has used into dollars: a dated table of prices, the
// bill of a run from its events, and its value, 1/(seconds·dollars).
//
// Prices enter a run once, as engine.Rates in its RunStart, and the bill follows from
// the events alone. What has no price makes a total unknown, never too small.
package cost
