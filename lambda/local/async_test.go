package local

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

func asEvent(in *lambda.InvokeInput) { in.InvocationType = types.InvocationTypeEvent }

// TestAsync: accepted at once, run later; a success is not repeated.
func TestAsync(t *testing.T) {
	h := newHarness(t, nil)
	l := newLatch(t)
	out, err := h.invoke(l.block(), asEvent)
	if err != nil || out.StatusCode != 202 || len(out.Payload) != 0 {
		t.Fatalf("%v, %+v", err, out)
	}
	<-l.arrived
	l.open()
	h.waitKind(1, Finished)
	h.clock.advance(time.Hour)
	if n := h.count(func(e Event) bool { return e.Kind == Retry }); n != 0 {
		t.Errorf("%d retries of a call that succeeded", n)
	}
}

// TestAsyncRetries: a call that fails is tried three times, after one and two minutes.
func TestAsyncRetries(t *testing.T) {
	h := newHarness(t, nil)
	if _, err := h.invoke(order{Do: "fail"}, asEvent); err != nil {
		t.Fatal(err)
	}
	id := h.waitKind(1, Invoked).RequestID
	for i, wait := range []time.Duration{time.Minute, 2 * time.Minute} {
		if e := h.waitKind(i+1, Retry); e.Duration != wait || e.RequestID != id || e.Text != "errorString" {
			t.Errorf("retry %d: %+v, want after %v", i+1, e, wait)
		}
		h.clock.waitTimer(t, wait)
		h.clock.advance(wait)
	}
	if e := h.waitKind(1, Dropped); e.RequestID != id || e.Text != "given up after 3 failures and 0 refusals: errorString" {
		t.Errorf("end %+v", e)
	}
	if b := h.Ledger()["f"]; b.Requests != 3 || b.Failed != 3 {
		t.Errorf("bill %+v, want 3 attempts", b)
	}
}

// TestAsyncThrottled: a refusal is tried again without counting as a failure.
func TestAsyncThrottled(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Concurrency = 1 })
	l := newLatch(t)
	call := h.start(l.block())
	<-l.arrived
	if _, err := h.invoke(order{}, asEvent); err != nil {
		t.Fatal(err)
	}
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if e := h.waitKind(i+1, Retry); e.Duration != wait {
			t.Errorf("retry %d after %v, want %v", i+1, e.Duration, wait)
		}
		if i == 2 {
			l.open()
			<-call
		}
		h.clock.waitTimer(t, wait)
		h.clock.advance(wait)
	}
	h.waitKind(2, Finished)
}

// TestAsyncClosed: a call that waits for its repetition ends with the service.
func TestAsyncClosed(t *testing.T) {
	h := newHarness(t, nil)
	if _, err := h.invoke(order{Do: "fail"}, asEvent); err != nil {
		t.Fatal(err)
	}
	h.waitKind(1, Retry)
	if err := h.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if n := h.count(func(e Event) bool { return e.Kind == Dropped }); n != 1 {
		t.Errorf("%d dropped calls, want 1", n)
	}
}
