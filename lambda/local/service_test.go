package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"dorylus/engine/testkit"
)

// TestClose: with a call in progress, one whose environment starts, and warm
// environments, Close leaves no process, goroutine or port; callers get a 500.
func TestClose(t *testing.T) {
	h := newHarness(t, nil)
	h.tell(order{})
	l := newLatch(t)
	running := h.start(l.block())
	<-l.arrived
	if err := h.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	r := <-running
	var e *types.ServiceException
	if !errors.As(r.err, &e) || !strings.Contains(r.err.Error(), "closing") {
		t.Errorf("the call in progress got %v", r.err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(h.Endpoint(), "http://")); err == nil {
		t.Error("the port is still open")
	}
	h.noProcesses()
	if n, m := h.count(func(e Event) bool { return e.Kind == ColdStart }), h.count(func(e Event) bool { return e.Kind == Ended }); n != m {
		t.Errorf("%d environments started, %d ended", n, m)
	}
	if err := h.Close(testContext(t)); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// TestStartContext: the end of the context closes the service.
func TestStartContext(t *testing.T) {
	testkit.Leaks(t)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Start(ctx, Options{Functions: map[string]Function{"f": testFunction(t)}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-s.stopping
	if err := s.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
}

// TestOptions: all problems at once.
func TestOptions(t *testing.T) {
	_, err := Start(context.Background(), Options{
		Functions: map[string]Function{
			"a b": testFunction(t),
			"c":   {Command: []string{"/no/such/program"}, MemoryMB: 64, Timeout: time.Hour},
			"d":   {},
		},
		Listen: "0.0.0.0:0", Concurrency: -1, Chaos: Chaos{Hang: 3},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`function name "a b"`, "/no/such/program: no such file", "memory of 64 MB", "timeout of 1h0m0s", "function d: no program",
		"only loopback", "concurrency is -1", "hang=3",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	if err := (Options{}).Validate(); err == nil || !strings.Contains(err.Error(), "no functions") {
		t.Errorf("no functions: %v", err)
	}
}

// watched tells when a text was written.
type watched struct {
	lockedBuffer
	want string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.want)) {
		close(w.seen)
	}
	return w.lockedBuffer.Write(p)
}

// TestServe: the command's body says where the service is, and the bill at its end.
func TestServe(t *testing.T) {
	testkit.Leaks(t)
	ctx, cancel := context.WithCancel(context.Background())
	out := &watched{want: "use it:", seen: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Options{Functions: map[string]Function{"f": testFunction(t)}}, out)
	}()
	<-out.seen
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"at http://127.0.0.1:", "function f: ", "256 MB, timeout 30s", "AWS_ENDPOINT_URL_LAMBDA=http", "0 calls, 0 failed", "0.000 GB-seconds"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// TestCloseAnytime: whatever goes on when Close comes (starts, calls, streams,
// retries, faults), every caller gets an answer and nothing is left behind.
func TestCloseAnytime(t *testing.T) {
	for after := 1; after <= 40; after += 3 {
		t.Run(fmt.Sprint("after event ", after), func(t *testing.T) {
			h := newHarness(t, func(o *Options) {
				o.Chaos = Chaos{Seed: uint64(after), Crash: 0.1, SlowStart: 0.3, DuplicateReply: 0.2, LateReply: 0.2, Delay: 500 * time.Millisecond}
				o.ColdStartDelay = 100 * time.Millisecond
			})
			h.clock.auto = 2 * time.Second
			var callers sync.WaitGroup
			for i := range 6 {
				callers.Go(func() {
					for range 4 {
						var err error
						switch i % 3 {
						case 0:
							_, err = h.invoke(order{})
						case 1:
							_, err = h.stream(testContext(t), order{Do: "stream", N: 1 << 20})
						case 2:
							_, err = h.invoke(order{Do: "fail"}, asEvent)
						}
						if err != nil {
							return // the service closes
						}
					}
				})
			}
			h.wait(after, "event", func(Event) bool { return true })
			if err := h.Close(testContext(t)); err != nil {
				t.Error(err)
			}
			callers.Wait()
			started, ended := h.count(func(e Event) bool { return e.Kind == ColdStart }), h.count(func(e Event) bool { return e.Kind == Ended })
			if started != ended {
				t.Errorf("%d environments started, %d ended", started, ended)
			}
		})
	}
}

// TestStorm: many calls at once all run, each in an environment of its own.
func TestStorm(t *testing.T) {
	h := newHarness(t, nil)
	const n = 60
	l := newLatch(t)
	var all []<-chan result
	for range n {
		all = append(all, h.start(l.block()))
	}
	for range n {
		<-l.arrived
	}
	l.open()
	for _, c := range all {
		if r := <-c; r.err != nil || r.out.FunctionError != nil {
			t.Error(r.err, r.out)
		}
	}
	if b := h.Ledger()["f"]; b.ColdStarts != n || b.Requests != n || b.Failed != 0 {
		t.Errorf("bill %+v, want %d cold starts", b, n)
	}
}
