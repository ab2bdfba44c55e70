package paper

import (
	"maps"

	"dorylus/kernels"
)

// What a device has held at most depends on what of it lies elsewhere: the largest moment
// of a run is not the same for all choices. So a device remembers each moment that was
// larger, in some kind, than all others, and a plan takes the largest for its choice.

// hold counts memory. mu is held.
func (c *counts) hold(k kind, takes int64) {
	if takes < 0 {
		c.note()
	}
	c.live += takes
	c.peak = max(c.peak, c.live)
	c.now[k] += takes
	c.grew = c.grew || takes > 0
}

// note remembers what is held now, unless another moment was as large in every kind. mu is
// held.
func (c *counts) note() {
	if !c.grew {
		return
	}
	c.grew = false
	kept := c.moments[:0]
	for _, m := range c.moments {
		if covers(m, c.now) {
			return // and none of those before was dropped: what now covers, m would have
		}
		if !covers(c.now, m) {
			kept = append(kept, m)
		}
	}
	c.moments = append(kept, maps.Clone(c.now))
}

// covers says that a is as large as b in every kind.
func covers(a, b map[kind]int64) bool {
	for k, n := range b {
		if a[k] < n {
			return false
		}
	}
	return true
}

// Holding is what a device has held over a run.
type Holding struct {
	Needs []Need // at its end, and what was held before alone, of no bytes
	// Moments are bytes by need, at each moment that was the largest in some way.
	Moments [][]int64
	Peak    int64
}

// Holding takes stock.
func (d *Device) Holding() Holding {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grew = true
	d.note()
	h := Holding{Needs: d.needs(), Peak: d.peak}
	at := map[kind]int{}
	for i, n := range h.Needs {
		at[kind{n.Name, n.Purpose, n.Each}] = i
	}
	for _, m := range d.moments {
		for k := range m {
			if _, there := at[k]; !there && m[k] > 0 {
				at[k] = len(h.Needs)
				h.Needs = append(h.Needs, Need{Name: k.name, Purpose: k.purpose, Each: k.each})
			}
		}
	}
	for _, m := range d.moments {
		bytes := make([]int64, len(h.Needs))
		for k, n := range m {
			if n > 0 {
				bytes[at[k]] = n
			}
		}
		h.Moments = append(h.Moments, bytes)
	}
	if d.scratch > 0 {
		h.Add(OpScratch, kernels.Other, d.costs.Block(d.scratch))
	}
	return h
}

// Add adds a need that is there all the time; of no bytes it is none.
func (h *Holding) Add(name string, p kernels.Purpose, bytes int64) {
	if bytes <= 0 {
		return
	}
	h.Needs = append(h.Needs, Need{Name: name, Purpose: p, Bytes: bytes})
	for i := range h.Moments {
		h.Moments[i] = append(h.Moments[i], bytes)
	}
	h.Peak += bytes
}
