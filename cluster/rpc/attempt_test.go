package rpc

import "testing"

func TestLater(t *testing.T) {
	for _, c := range []struct {
		job  string
		a, b int
	}{{"dorylus", 0, 1}, {"dorylus", 1, 2}, {"x, attempt y", 9, 10}} {
		a, b := Attempt(c.job, c.a), Attempt(c.job, c.b)
		if Later(a, b) || !Later(b, a) || Later(a, a) || Later(Attempt("other", c.b), a) {
			t.Errorf("%q and %q: want that the second alone is later", a, b)
		}
	}
}
