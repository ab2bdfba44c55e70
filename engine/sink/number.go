package sink

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// Number is a float64 whose NaN and infinities are null in JSON: a value that
// was not measured, such as the accuracy on an empty validation set.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	x := float64(n)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(x)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		*n = Number(math.NaN())
		return nil
	}
	x, err := strconv.ParseFloat(string(data), 64)
	*n = Number(x)
	return err
}

// Known says whether n was measured.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }
