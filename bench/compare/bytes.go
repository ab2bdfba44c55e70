package compare

import (
	"math"

	"dorylus/engine/sink"
)

// moved is how many bytes a run has sent between machines; NaN where it counts none.
func moved(s *sink.Summary) sink.Number {
	if s.Moved == nil {
		return sink.Number(math.NaN())
	}
	return *s.Moved
}
