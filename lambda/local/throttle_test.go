package local

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// TestConcurrency: a call over the limit gets 429 at once, with its reason; one
// that ends makes room. Other functions count, too.
func TestConcurrency(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		o.Concurrency = 3
		small := testFunction(t)
		small.Reserved = 1
		o.Functions["reserved"] = small
	})
	l := newLatch(t)
	reserved := func(in *lambda.InvokeInput) { in.FunctionName = aws.String("reserved") }
	running := []<-chan result{h.start(l.block()), h.start(l.block(), reserved)}
	for range running {
		<-l.arrived
	}
	_, err := h.invoke(order{}, reserved)
	if e := throttled(t, err); e.Reason != types.ThrottleReasonReservedFunctionConcurrentInvocationLimitExceeded || status(err) != 429 {
		t.Errorf("over the function's limit: %d, %+v", status(err), e)
	}
	running = append(running, h.start(l.block()))
	<-l.arrived
	_, err = h.invoke(order{})
	e := throttled(t, err)
	if e.Reason != types.ThrottleReasonConcurrentInvocationLimitExceeded || aws.ToString(e.Message) != "Rate Exceeded." || aws.ToString(e.Type) != "User" {
		t.Errorf("over the service's limit: %d, %+v", status(err), e)
	}
	l.open()
	for _, c := range running {
		if r := <-c; r.err != nil {
			t.Error(r.err)
		}
	}
	h.tell(order{})
	if b := h.Ledger(); b["f"].Throttled != 1 || b["reserved"].Throttled != 1 || b.Total().Requests != 4 {
		t.Errorf("ledger %+v", b)
	}
}

// TestScaleUp: environments are added at a rate; calls that find a warm one are
// not held back.
func TestScaleUp(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.ScaleUp = 2 })
	l := newLatch(t)
	running := []<-chan result{h.start(l.block()), h.start(l.block())}
	for range running {
		<-l.arrived
	}
	_, err := h.invoke(order{})
	if e := throttled(t, err); e.Reason != types.ThrottleReasonFunctionInvocationRateLimitExceeded || aws.ToString(e.RetryAfterSeconds) != "5" {
		t.Errorf("third environment: reason %s, retry after %s s; want the rate, 5", e.Reason, aws.ToString(e.RetryAfterSeconds))
	}
	h.clock.advance(5*time.Second - time.Millisecond)
	if _, err := h.invoke(order{}); err == nil {
		t.Error("a third environment before its time")
	}
	h.clock.advance(time.Millisecond)
	if a := h.tell(order{}); a.Calls != 1 {
		t.Errorf("call %d of a third environment", a.Calls)
	}
	for i := 2; i < 5; i++ {
		if a := h.tell(order{}); a.Calls != i {
			t.Errorf("warm call: call %d, want %d", a.Calls, i)
		}
	}
	l.open()
	for _, c := range running {
		if r := <-c; r.err != nil {
			t.Error(r.err)
		}
	}
}

// TestRequestRate: ten times the concurrency in requests a second.
func TestRequestRate(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Concurrency = 1 })
	for i := range 10 {
		if _, err := h.invoke(order{}); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	_, err := h.invoke(order{})
	if e := throttled(t, err); e.Reason != types.ThrottleReasonFunctionInvocationRateLimitExceeded {
		t.Errorf("reason %s", e.Reason)
	}
	h.clock.advance(100 * time.Millisecond)
	h.tell(order{})
}
