package testkit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Param is a set of values that a loss depends on, and what is claimed to be the
// loss's gradient at them.
type Param struct {
	Name string
	X    []float32 // moved by the check, and put back bit for bit
	Grad []float32 // dLoss/dX, computed before the check
}

// GradCheck compares gradients with central differences of the loss. The zero
// value is ready to use.
//
// The loss is a float64, but of float32 values: it carries a rounding noise of
// about 1e-7 of its terms, which a difference divides by the step, while the error
// of a central difference grows with the step's square. A step of 1e-2 balances
// them for values near 1; two steps, one half of the other, are combined
// (Richardson) so that the square's term cancels. Keep the inputs away from kinks:
// a ReLU within a step of 0, or a maximum attained twice, has no derivative there.
type GradCheck struct {
	// Step is the distance by which a value is moved to either side; 0 means 1e-2.
	Step float64
	// Tol is the difference allowed, as a share of the largest gradient of the
	// same parameter; 0 means 2e-3.
	Tol float64
	// Samples is the number of values of each parameter that are tried; 0 means
	// 32. Smaller parameters are tried whole.
	Samples int
	// Seed picks the samples.
	Seed uint64
}

// Diff is one value's gradient, as claimed and as measured.
type Diff struct {
	Param          string
	Index          int
	Claimed, Found float64
	Allowed        float64
}

// Miss is the difference in units of what is allowed: above 1 is wrong.
func (d Diff) Miss() float64 {
	off := math.Abs(d.Claimed - d.Found)
	switch {
	case off == 0:
		return 0
	case math.IsNaN(off):
		return math.Inf(1)
	}
	return off / d.Allowed
}

// String names the value and both gradients.
func (d Diff) String() string {
	return fmt.Sprintf("d loss / d %s[%d] is %.7g, central differences give %.7g (allowed ± %.3g, %.3g times that)", d.Param, d.Index, d.Claimed, d.Found, d.Allowed, d.Miss())
}

// Check fails the test for each parameter with a wrong gradient and reports its
// worst value and the seed. loss must depend on nothing but the parameters: run
// it with the same dropout masks each time.
func (c GradCheck) Check(t testing.TB, loss func() float64, params ...Param) {
	t.Helper()
	for _, p := range params {
		worst, err := c.Worst(loss, p)
		switch {
		case err != nil:
			t.Errorf("check gradient: %v, seed %d", err, c.Seed)
		case worst.Miss() > 1:
			t.Errorf("%v, seed %d", worst, c.Seed)
		}
	}
}

// Worst is the sample of p whose gradient is furthest from its central
// difference. A parameter without values, a gradient of another length, and a
// loss that changes from one call to the next are errors.
func (c GradCheck) Worst(loss func() float64, p Param) (Diff, error) {
	if len(p.X) == 0 || len(p.X) != len(p.Grad) {
		return Diff{}, fmt.Errorf("%s has %d values and %d gradients", p.Name, len(p.X), len(p.Grad))
	}
	if a, b := loss(), loss(); a != b {
		return Diff{}, fmt.Errorf("the loss is %v, then %v: it must not change between calls", a, b)
	}
	step, tol, samples := c.Step, c.Tol, c.Samples
	if step == 0 {
		step = 1e-2
	}
	if tol == 0 {
		tol = 2e-3
	}
	if samples == 0 {
		samples = 32
	}
	var top float64
	for _, g := range p.Grad {
		if a := math.Abs(float64(g)); a > top { // not for NaN
			top = a
		}
	}
	var diffs []Diff
	rng := rand.New(rand.NewPCG(c.Seed, 7))
	for n, i := range rng.Perm(len(p.X)) {
		if n == samples {
			break
		}
		wide, half := difference(loss, p.X, i, step), difference(loss, p.X, i, step/2)
		d := Diff{Param: p.Name, Index: i, Claimed: float64(p.Grad[i]), Found: (4*half - wide) / 3}
		diffs = append(diffs, d)
		if a := math.Abs(d.Found); a > top {
			top = a
		}
	}
	var worst Diff
	for i, d := range diffs {
		d.Allowed = tol * top
		if i == 0 || d.Miss() > worst.Miss() {
			worst = d
		}
	}
	return worst, nil
}

// difference is the slope of loss between x[i]-h and x[i]+h, both as rounded to
// float32.
func difference(loss func() float64, x []float32, i int, h float64) float64 {
	was := x[i]
	defer func() { x[i] = was }()
	up, down := float32(float64(was)+h), float32(float64(was)-h)
	x[i] = up
	above := loss()
	x[i] = down
	return (above - loss()) / (float64(up) - float64(down))
}
