package testkit

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

// leakPatience bounds how long Leaks waits for goroutines that are about to end.
const leakPatience = 5 * time.Second

// Leaks fails the test if goroutines that it started are still there when it and
// its other cleanups have ended; the report holds their stacks. Call it first
// thing. Tests that run in parallel see each other's goroutines: don't mix.
func Leaks(t testing.TB) {
	t.Helper()
	leaksWithin(t, leakPatience)
}

func leaksWithin(t testing.TB, patience time.Duration) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if left := leaked(ctx, before); len(left) > 0 {
			t.Errorf("%d goroutines outlive the test:\n\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
}

// leaked lets goroutines run until none but those of before is left, or ctx ends,
// and returns the stacks of the rest.
func leaked(ctx context.Context, before map[string]string) []string {
	for {
		var left []string
		for id, stack := range goroutines() {
			if _, old := before[id]; !old {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || ctx.Err() != nil {
			return left
		}
		runtime.Gosched()
	}
}

// goroutines is the stacks of all goroutines by id, without those that belong to
// the test runner and the runtime: signal delivery, the alarm of -timeout, and
// tests waiting for their sub-tests.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := make(map[string]string)
	for _, stack := range strings.Split(string(buf), "\n\n") {
		head, _, ok := strings.Cut(stack, " [") // "goroutine 12 [running]:"
		if !ok || ofRunner(stack) {
			continue
		}
		all[head] = strings.TrimSpace(stack)
	}
	return all
}

// ofRunner says whether a stack is one of the test runner's own.
func ofRunner(stack string) bool {
	for _, f := range []string{
		"testing.(*T).Run(", "testing.(*M).", "testing.runTests(", "testing.tRunner.func",
		"os/signal.signal_recv", "os/signal.loop", "runtime.ensureSigM",
	} {
		if strings.Contains(stack, f) && !strings.Contains(stack, "created by testing.(*T).Run") {
			return true
		}
	}
	return false
}
