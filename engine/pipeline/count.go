package pipeline

import (
	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/store"
)

// Intervals is the number of intervals that a run with these settings has at most on each
// of its servers, of c.Threads cores (0: as many as this machine has).
func Intervals(c *engine.Config, st *store.Store) int { return intervals(c, st) }

// CheckData refuses data that a run would refuse.
func CheckData(st *store.Store, split dataset.Split) error { return checkData(st, split) }
