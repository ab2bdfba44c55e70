package compare

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dorylus/engine/cost"
	"dorylus/engine/sink"
)

// unknown stands where nothing was measured.
const unknown = "-"

// spread is a mean with its sample standard deviation over runs; NaN: one run.
type spread struct{ mean, std float64 }

// over is the spread of a number over a mode's runs. Runs that did not measure it do
// not count.
func (m *Mode) over(get func(*sink.Summary) sink.Number) spread {
	runs := m.runs()
	var x []float64
	sum := 0.0
	for i := range runs {
		if n := get(&runs[i]); n.Known() {
			x = append(x, float64(n))
			sum += float64(n)
		}
	}
	s := spread{sum / float64(len(x)), math.NaN()}
	if len(x) < 2 {
		return s
	}
	squares := 0.0
	for _, v := range x {
		squares += (v - s.mean) * (v - s.mean)
	}
	s.std = math.Sqrt(squares / float64(len(x)-1))
	return s
}

// scale is how the numbers of a row are written: all in one unit and with as many
// decimals, so that they can be compared by eye.
type scale struct {
	factor   float64
	unit     string // with its space
	decimals int
}

// text is a number, with its deviation where there is one.
func (s scale) text(x spread) string {
	if math.IsNaN(x.mean) {
		return unknown
	}
	if x.mean == 0 && math.IsNaN(x.std) {
		return "0" + s.unit
	}
	text := strconv.FormatFloat(x.mean*s.factor, 'f', s.decimals, 64)
	if !math.IsNaN(x.std) {
		text += " ± " + strconv.FormatFloat(x.std*s.factor, 'f', s.decimals, 64)
	}
	return text + s.unit
}

// secondsScale fits times: in the unit of the largest, with three digits of the smallest.
func secondsScale(values ...float64) scale {
	s := scale{1, " s", 0}
	switch top := largest(values); {
	case top < 1e-3:
		s = scale{1e6, " µs", 0}
	case top < 1:
		s = scale{1e3, " ms", 0}
	}
	for _, v := range values {
		if v > 0 {
			s.decimals = min(6, max(s.decimals, digitsAfter(v*s.factor, 3)))
		}
	}
	return s
}

// bytesScale fits sizes.
func bytesScale(values ...float64) scale {
	top := largest(values)
	for _, u := range []struct {
		size float64
		unit string
	}{{1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}} {
		if top >= u.size {
			return scale{1 / u.size, u.unit, digitsAfter(top/u.size, 3)}
		}
	}
	return scale{1, " bytes", 0}
}

// plainScale fits counts: whole numbers as they are, means with a decimal.
func plainScale(values ...float64) scale {
	for _, v := range values {
		if v != math.Trunc(v) {
			return scale{1, "", 1}
		}
	}
	return scale{1, "", 0}
}

// dollarScale has the decimals that all amounts need, so that parts and total add up
// digit by digit.
func dollarScale(amounts []cost.Dollars) scale {
	decimals := 2
	for _, d := range amounts {
		need := 9
		for ; need > 0 && d%10 == 0; d /= 10 {
			need--
		}
		decimals = max(decimals, need)
	}
	return scale{1, "", decimals}
}

func largest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			top = max(top, math.Abs(v))
		}
	}
	return top
}

// digitsAfter is how many decimals leave x with so many digits.
func digitsAfter(x float64, digits int) int {
	if x == 0 {
		return 0
	}
	return max(0, digits-1-int(math.Floor(math.Log10(math.Abs(x)))))
}

// significant is x with so many digits at least, never with an exponent.
func significant(x float64, digits int) string {
	if math.IsNaN(x) {
		return unknown
	}
	return grouped(strconv.FormatFloat(x, 'f', min(9, digitsAfter(x, digits)), 64))
}

// grouped puts commas between thousands.
func grouped(text string) string {
	whole, part, dot := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + part
	}
	return whole
}

func percent(n sink.Number) string {
	if !n.Known() {
		return unknown
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n))
}

// plain is a count.
func plain(n sink.Number) string {
	if !n.Known() {
		return unknown
	}
	return plainScale(float64(n)).text(spread{float64(n), math.NaN()})
}

// short is the head of a checksum.
func short(sha string) string {
	if sha == "" {
		return unknown
	}
	return sha[:min(8, len(sha))]
}
