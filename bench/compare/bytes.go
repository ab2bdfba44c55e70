package compare

import (
	"encoding/json"
	"math"

	"dorylus/engine/sink"
)

// moved is how many bytes a run has sent between machines, its summary's "bytes_moved";
// NaN where it counts none.
func moved(s *sink.Summary) sink.Number {
	var has struct {
		Moved *sink.Number `json:"bytes_moved"`
	}
	data, err := json.Marshal(s)
	if err != nil || json.Unmarshal(data, &has) != nil || has.Moved == nil {
		return sink.Number(math.NaN())
	}
	return *has.Moved
}
