package cost

import (
	"math"
	"strconv"
	"strings"
)

// Dollars is an amount in units of 10⁻⁹ US dollars, so that the parts of a bill,
// each rounded once, add up to its total in every digit.
type Dollars int64

// FromUSD rounds an amount to the nearest unit.
func FromUSD(usd float64) Dollars { return Dollars(math.Round(usd * 1e9)) }

// USD is d in dollars.
func (d Dollars) USD() float64 { return float64(d) / 1e9 }

// String is d in dollars with three digits at least, and cents at least: "$0.000144",
// "$1.23".
func (d Dollars) String() string {
	if d < 0 {
		return "-" + (-d).String()
	}
	if d == 0 {
		return "$0"
	}
	decimals := 2
	for unit := Dollars(1e9); d < unit && decimals < 9; unit /= 10 {
		decimals++
	}
	text := strconv.FormatFloat(d.USD(), 'f', decimals, 64)
	if whole, part, _ := strings.Cut(text, "."); len(part) > 2 {
		text = whole + "." + part[:2] + strings.TrimRight(part[2:], "0")
	}
	return "$" + text
}

// Exact is d with all its digits: "$0.432", "$63.296000001".
func (d Dollars) Exact() string { return "$" + strconv.FormatFloat(d.USD(), 'f', -1, 64) }

// Value is 1/(T·C), what a run in so many seconds for so many dollars is worth; NaN
// where either is 0 or not known.
func Value(seconds, usd float64) float64 {
	if !(seconds > 0) || !(usd > 0) {
		return math.NaN()
	}
	return 1 / (seconds * usd)
}
