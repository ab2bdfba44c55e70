package cuda

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

func testWorker(t *testing.T, d *fakeDriver) *worker {
	t.Helper()
	if d.gpus == nil {
		d.gpus = []deviceInfo{h200}
	}
	w, err := newWorker(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWorkerKeepsItsThread: whoever asks, tasks run on one thread, one at a time.
func TestWorkerKeepsItsThread(t *testing.T) {
	d := &fakeDriver{}
	w := testWorker(t, d)
	var inside, calls atomic.Int32
	var threads sync.Map
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				err := w.do(func(context) error {
					if inside.Add(1) != 1 {
						t.Error("two tasks run at once")
					}
					threads.Store(syscall.Gettid(), true)
					runtime.Gosched()
					inside.Add(-1)
					calls.Add(1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	n := 0
	threads.Range(func(any, any) bool { n++; return true })
	if n != 1 || calls.Load() != 400 {
		t.Errorf("%d calls on %d threads, want 400 on 1", calls.Load(), n)
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
	if err := w.close(); err != nil || d.held != 0 {
		t.Errorf("closed twice: %v, %d contexts held", err, d.held)
	}
	if err := w.do(func(context) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("after close: %v", err)
	}
}

// TestWorkerLosesItsContext: an error that loses the context is everybody's from then
// on; others are their task's own.
func TestWorkerLosesItsContext(t *testing.T) {
	w := testWorker(t, &fakeDriver{})
	full := &Error{Op: "allocate", Code: 2}
	if err := w.do(func(context) error { return full }); err != full {
		t.Errorf("got %v", err)
	}
	if err := w.do(func(context) error { return nil }); err != nil {
		t.Errorf("after an error that loses nothing: %v", err)
	}
	gone := &Error{Op: "SpMM of interval 3, 10 x 16", Code: 700}
	if err := w.do(func(context) error { return gone }); err != gone {
		t.Errorf("got %v", err)
	}
	ran := false
	if err := w.do(func(context) error { ran = true; return nil }); err != gone || ran {
		t.Errorf("after a lost context: %v, run: %v; want the first error and no run", err, ran)
	}
	if err := w.close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestWorkerDoesNotStart(t *testing.T) {
	for method, held := range map[string]int{"Retain0": 0, "SetCurrent": 0} {
		d := &fakeDriver{gpus: []deviceInfo{h200}, fail: map[string]int{method: 46}}
		_, err := newWorker(d, 0)
		if err == nil || !strings.Contains(err.Error(), "open cuda:0: ") || !strings.Contains(err.Error(), "CUDA error 46") || d.held != held {
			t.Errorf("%s fails: %v, %d contexts held", method, err, d.held)
		}
	}
}

// TestWorkerClosesAmongTasks: each task is run, or told why not; nobody waits for ever.
func TestWorkerClosesAmongTasks(t *testing.T) {
	d := &fakeDriver{fail: map[string]int{"Release": 719}}
	w := testWorker(t, d)
	var group sync.WaitGroup
	begun := make(chan struct{}, 8)
	for range 8 {
		group.Go(func() {
			for {
				if err := w.do(func(context) error { return nil }); err != nil {
					if !errors.Is(err, errClosed) {
						t.Error(err)
					}
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	<-begun
	var e *Error
	if err := w.close(); !errors.As(err, &e) || e.Code != 719 {
		t.Errorf("close: %v, want the driver's 719", err)
	}
	group.Wait()
}
