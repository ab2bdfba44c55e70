package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"dorylus/engine/testkit"
)

// harness is a service with one function "f", the SDK's client, a clock that
// stands still, and all events.
type harness struct {
	*Service
	t      *testing.T
	client *lambda.Client
	clock  *fakeClock
	log    *lockedBuffer

	mu     sync.Mutex
	seen   []Event
	arrive chan struct{} // closed and replaced at each event
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// testFunction is this program as a worker.
func testFunction(t testing.TB) Function {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Function{Command: []string{self}, Env: map[string]string{workerVariable: "1"}, MemoryMB: 256, Timeout: 30 * time.Second}
}

// newHarness starts a service; at the test's end nothing of it may be left.
func newHarness(t *testing.T, change func(*Options)) *harness {
	t.Helper()
	testkit.Leaks(t)
	h := &harness{t: t, clock: newFakeClock(), log: &lockedBuffer{}, arrive: make(chan struct{})}
	o := Options{
		Functions: map[string]Function{"f": testFunction(t)}, Cgroup: "none",
		Clock: h.clock, Log: h.log, OnEvent: h.note,
	}
	if change != nil {
		change(&o)
	}
	var err error
	if h.Service, err = Start(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	h.client = newClient(h.Endpoint(), transport)
	t.Cleanup(func() {
		if err := h.Close(testContext(t)); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		h.noProcesses()
	})
	return h
}

func newClient(endpoint string, transport http.RoundTripper) *lambda.Client {
	return lambda.New(lambda.Options{
		BaseEndpoint: aws.String(endpoint), Region: "us-east-1", Retryer: aws.NopRetryer{},
		HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
}

func (h *harness) note(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, e)
	close(h.arrive)
	h.arrive = make(chan struct{})
}

// wait returns the n-th event (from 1) that the test is about.
func (h *harness) wait(n int, what string, is func(Event) bool) Event {
	h.t.Helper()
	ctx := testContext(h.t)
	for {
		h.mu.Lock()
		count, more := 0, h.arrive
		for _, e := range h.seen {
			if is(e) {
				if count++; count == n {
					h.mu.Unlock()
					return e
				}
			}
		}
		h.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			h.t.Fatalf("waited in vain for %d × %s; events: %+v", n, what, h.seen)
		}
	}
}

func (h *harness) waitKind(n int, k Kind) Event {
	h.t.Helper()
	return h.wait(n, string(k), func(e Event) bool { return e.Kind == k })
}

func (h *harness) count(is func(Event) bool) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.seen {
		if is(e) {
			n++
		}
	}
	return n
}

// noProcesses checks that every worker is gone.
func (h *harness) noProcesses() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.seen {
		if e.Kind == ColdStart {
			if err := syscall.Kill(-e.PID, 0); !errors.Is(err, syscall.ESRCH) {
				h.t.Errorf("worker %d is still there (%v)", e.PID, err)
			}
		}
	}
}

func event(t *testing.T, o order) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// invoke calls f and returns what the SDK does.
func (h *harness) invoke(o order, change ...func(*lambda.InvokeInput)) (*lambda.InvokeOutput, error) {
	in := &lambda.InvokeInput{FunctionName: aws.String("f"), Payload: event(h.t, o)}
	for _, c := range change {
		c(in)
	}
	return h.client.Invoke(testContext(h.t), in)
}

// tell calls f and returns what the worker says.
func (h *harness) tell(o order, change ...func(*lambda.InvokeInput)) answer {
	h.t.Helper()
	out, err := h.invoke(o, change...)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.answer(out)
}

func (h *harness) answer(out *lambda.InvokeOutput) answer {
	h.t.Helper()
	var a answer
	if out.FunctionError != nil {
		h.t.Fatalf("function error %s: %s", *out.FunctionError, out.Payload)
	}
	if err := json.Unmarshal(out.Payload, &a); err != nil {
		h.t.Fatalf("reply %q: %v", out.Payload, err)
	}
	return a
}

// result is how a call ended.
type result struct {
	out *lambda.InvokeOutput
	err error
}

// start calls f in a goroutine.
func (h *harness) start(o order, change ...func(*lambda.InvokeInput)) <-chan result {
	c := make(chan result, 1)
	go func() {
		out, err := h.invoke(o, change...)
		c <- result{out, err}
	}()
	return c
}

// failed checks that a call ran and ended in a function error of a type, and
// returns its message.
func failed(t *testing.T, r result, kind string) string {
	t.Helper()
	if r.err != nil {
		t.Fatalf("call: %v, want a function error %s", r.err, kind)
	}
	var e struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(r.out.Payload, &e); err != nil {
		t.Fatalf("payload %q: %v", r.out.Payload, err)
	}
	if aws.ToString(r.out.FunctionError) != "Unhandled" || e.ErrorType != kind || r.out.StatusCode != 200 {
		t.Errorf("status %d, function error %q, payload %s; want 200, Unhandled, type %s", r.out.StatusCode, aws.ToString(r.out.FunctionError), r.out.Payload, kind)
	}
	return e.ErrorMessage
}

// latch is where blocked workers wait.
type latch struct {
	addr    string
	arrived chan struct{}
	let     chan struct{}
}

func newLatch(t *testing.T) *latch {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &latch{addr: l.Addr().String(), arrived: make(chan struct{}, 1000), let: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			h.arrived <- struct{}{}
			all.Go(func() { <-h.let; conn.Close() })
		}
	})
	t.Cleanup(func() { h.open(); l.Close(); all.Wait() })
	return h
}

func (l *latch) open() {
	select {
	case <-l.let:
	default:
		close(l.let)
	}
}

func (l *latch) block() order { return order{Do: "block", Addr: l.addr} }

func throttled(t *testing.T, err error) *types.TooManyRequestsException {
	t.Helper()
	var e *types.TooManyRequestsException
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want TooManyRequestsException", err)
	}
	return e
}

// http1 is a transport for one connection that a test can cut.
type http1 struct {
	http.Transport
	mu   sync.Mutex
	conn net.Conn
}

func (h *http1) RoundTrip(r *http.Request) (*http.Response, error) {
	h.DisableKeepAlives = true
	h.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conn = c
		return c, err
	}
	return h.Transport.RoundTrip(r)
}

func (h *http1) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conn.Close()
}
