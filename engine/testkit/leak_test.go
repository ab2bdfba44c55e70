package testkit

import (
	"context"
	"strings"
	"testing"
	"time"
)

func waitHere(ready chan<- struct{}, stop <-chan struct{}) {
	ready <- struct{}{}
	<-stop
}

// TestLeaked: a goroutine that waits is found, with its stack, and is gone from
// the report once it has ended.
func TestLeaked(t *testing.T) {
	before := goroutines()
	ready, stop := make(chan struct{}), make(chan struct{})
	go waitHere(ready, stop)
	<-ready
	done, cancel := context.WithCancel(context.Background())
	cancel()
	left := leaked(done, before)
	if len(left) != 1 || !strings.Contains(left[0], "waitHere") {
		t.Errorf("with one goroutine waiting, leaked is %q", left)
	}
	close(stop)
	ctx, cancel := context.WithTimeout(context.Background(), leakPatience)
	defer cancel()
	if left := leaked(ctx, before); len(left) > 0 {
		t.Errorf("after it was told to stop, leaked is %q", left)
	}
}

// TestLeaksWaits: goroutines that end soon after the test are no leak, nor are
// those of cleanups that run before.
func TestLeaksWaits(t *testing.T) {
	t.Run("within", func(t *testing.T) {
		Leaks(t)
		ready, stop := make(chan struct{}), make(chan struct{})
		go waitHere(ready, stop)
		<-ready
		t.Cleanup(func() { close(stop) })
	})
}

// recorder keeps what a test helper reports.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   int
}

func (r *recorder) Helper()               {}
func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(string, ...any) { r.errors++ }

// TestLeaksFails: Leaks itself reports, once its patience has ended.
func TestLeaksFails(t *testing.T) {
	r := &recorder{}
	leaksWithin(r, time.Millisecond)
	ready, stop := make(chan struct{}), make(chan struct{})
	go waitHere(ready, stop)
	<-ready
	r.cleanups[0]()
	if r.errors != 1 {
		t.Errorf("Leaks reported %d errors for a goroutine that waits, want 1", r.errors)
	}
	close(stop)
}
