// Package invariant holds checks of our own work: things that no input can
// break, only a bug. They cost time, so they run under the build tag invariants
// and under the race detector only; elsewhere Enabled is a false constant and the
// compiler removes whatever it guards.
package invariant

import "fmt"

// Check panics with the message if the checks are on and ok is false. Arguments
// that are costly to make belong inside if invariant.Enabled.
func Check(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
