package wire

import (
	"encoding/json"
	"math"
)

// plain is a Result without its encoding.
type plain Result

// bits is a Result as it travels: JSON has no number for a loss that is infinite or none
// at all, so the loss goes as its bits.
type bits struct {
	*plain
	Loss uint64 `json:"loss"`
}

// MarshalJSON implements json.Marshaler.
func (r Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(bits{(*plain)(&r), math.Float64bits(r.Loss)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Result) UnmarshalJSON(text []byte) error {
	b := bits{plain: (*plain)(r)}
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	r.Loss = math.Float64frombits(b.Loss)
	return nil
}
