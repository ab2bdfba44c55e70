package invariant

import "testing"

func TestCheck(t *testing.T) {
	defer func() {
		if got := recover() != nil; got != Enabled {
			t.Errorf("Check(false) panicked: %v, want %v", got, Enabled)
		}
	}()
	Check(true, "fine")
	Check(false, "row %d", 3)
}
