package local

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// alone is a service with one fault at probability 1.
func alone(t *testing.T, chaos Chaos) *harness {
	return newHarness(t, func(o *Options) { o.Chaos = chaos })
}

// TestFaults: each fault does what it says, even when the reply is quick.
func TestFaults(t *testing.T) {
	t.Run("crash", func(t *testing.T) {
		h := alone(t, Chaos{Crash: 1})
		out, err := h.invoke(order{})
		failed(t, result{out, err}, "Runtime.ExitError")
	})
	t.Run("crash in the middle", func(t *testing.T) {
		h := alone(t, Chaos{Crash: 1, Window: time.Second})
		l := newLatch(t)
		call := h.start(l.block())
		<-l.arrived
		h.clock.advance(time.Second)
		failed(t, <-call, "Runtime.ExitError")
	})
	t.Run("hang", func(t *testing.T) {
		h := alone(t, Chaos{Hang: 1})
		call := h.start(order{})
		h.wait(1, "hang", func(e Event) bool { return e.Kind == Fault && e.Text == "hang" })
		h.clock.advance(30 * time.Second)
		failed(t, <-call, "Sandbox.Timedout")
	})
	t.Run("slow start", func(t *testing.T) {
		h := alone(t, Chaos{SlowStart: 1, Delay: 7 * time.Second})
		call := h.start(order{})
		h.clock.waitTimer(t, 7*time.Second)
		h.clock.advance(7 * time.Second)
		if r := <-call; r.err != nil {
			t.Fatal(r.err)
		}
		h.tell(order{}) // a warm start is not slowed
	})
	t.Run("throttle", func(t *testing.T) {
		h := alone(t, Chaos{Throttle: 1})
		_, err := h.invoke(order{})
		throttled(t, err)
		if err := h.SetChaos(Chaos{Throttle: -1}); err == nil {
			t.Error("a probability of -1 was accepted")
		}
		if b := h.Ledger()["f"]; b.Requests != 0 || b.Throttled != 1 {
			t.Errorf("bill %+v", b)
		}
		if err := h.SetChaos(Chaos{}); err != nil {
			t.Error(err)
		}
		h.tell(order{})
	})
	t.Run("server error", func(t *testing.T) {
		h := alone(t, Chaos{ServerError: 1})
		_, err := h.invoke(order{})
		var e *types.ServiceException
		if !errors.As(err, &e) || status(err) != 500 || aws.ToString(e.Type) != "Service" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("lost reply", func(t *testing.T) {
		h := alone(t, Chaos{LoseReply: 1})
		if out, err := h.invoke(order{}); err == nil || !strings.Contains(err.Error(), "EOF") {
			t.Errorf("got %v, %v; want a broken connection", out, err)
		}
		if _, err := h.stream(testContext(t), order{Do: "stream", N: 100}); err == nil {
			t.Error("the streamed reply was not lost")
		}
		if b := h.Ledger()["f"]; b.Requests != 2 || b.Failed != 0 {
			t.Errorf("bill %+v: both calls ran", b)
		}
	})
	t.Run("late reply", func(t *testing.T) {
		h := alone(t, Chaos{LateReply: 1, Delay: 3 * time.Second})
		call := h.start(order{})
		h.clock.waitTimer(t, 3*time.Second)
		select {
		case r := <-call:
			t.Errorf("not late: %+v", r)
		default:
		}
		h.clock.advance(3 * time.Second)
		if r := <-call; r.err != nil {
			t.Error(r.err)
		}
	})
	t.Run("duplicate", func(t *testing.T) {
		h := alone(t, Chaos{DuplicateReply: 1})
		l := newLatch(t)
		call := h.start(l.block())
		<-l.arrived
		<-l.arrived
		l.open()
		a := h.answer((<-call).out)
		one, two := h.waitKind(1, Finished), h.waitKind(2, Finished)
		if one.RequestID != a.Request || two.RequestID != a.Request || one.PID == two.PID {
			t.Errorf("two runs of %s: %+v, %+v", a.Request, one, two)
		}
	})
}

// TestChaosRepeats: one seed, one story; another seed, another one.
func TestChaosRepeats(t *testing.T) {
	story := func(seed uint64) []string {
		var all []string
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newHarness(t, func(o *Options) {
				o.Chaos = Chaos{Seed: seed, Crash: 0.2, Hang: 0.1, SlowStart: 0.2, Throttle: 0.15, LoseReply: 0.1, LateReply: 0.3, ServerError: 0.1, Delay: 500 * time.Millisecond}
			})
			h.clock.auto = time.Second
			hangs := 0
			for range 40 {
				call := h.start(order{})
				if h.opt.Chaos.at(uint64(len(all))).hangs() {
					hangs++
					h.wait(hangs, "hang", func(e Event) bool { return e.Kind == Fault && e.Text == "hang" })
					h.clock.advance(30 * time.Second)
				}
				r := <-call
				switch {
				case r.err != nil:
					all = append(all, fmt.Sprintf("status %d", status(r.err)))
				case r.out.FunctionError != nil:
					all = append(all, errorType(r.out.Payload, ""))
				default:
					all = append(all, fmt.Sprintf("call %d", h.answer(r.out).Calls))
				}
			}
			for _, e := range h.seen {
				if e.Kind == Fault {
					all = append(all, e.Text)
				}
			}
		})
		return all
	}
	one, again, other := story(7), story(7), story(8)
	if !slices.Equal(one, again) {
		t.Errorf("seed 7 told two stories:\n%q\n%q", one, again)
	}
	if slices.Equal(one, other) {
		t.Error("seeds 7 and 8 told the same story")
	}
	for _, want := range []string{"status 429", "status 500", "status 0", "Runtime.ExitError", "Sandbox.Timedout", "slow start", "late reply", "call 2"} {
		if !slices.Contains(one, want) {
			t.Errorf("seed 7 has no %q: %q", want, one)
		}
	}
}

// hangs says whether the worker gets to hang: the request is not refused before,
// and no crash comes first.
func (f faults) hangs() bool { return f.hang && !f.crash && !f.throttle && !f.serverError }

// TestProbabilities: faults come as often as asked, independently of each other.
func TestProbabilities(t *testing.T) {
	c := Chaos{Seed: 3, Crash: 0.1, Hang: 0.5, DuplicateReply: 0.1}
	const n = 100_000
	var crash, hang, both, duplicate int
	for i := range uint64(n) {
		f := c.at(i)
		count := func(p *int, is bool) {
			if is {
				*p++
			}
		}
		count(&crash, f.crash)
		count(&hang, f.hang)
		count(&both, f.crash && f.hang)
		count(&duplicate, f.duplicate)
		if f.throttle || f.lose || f.late || f.serverError || f.slowStart {
			t.Fatalf("request %d meets a fault of probability 0: %+v", i, f)
		}
	}
	for _, x := range []struct {
		name string
		got  int
		p    float64
	}{{"crash", crash, 0.1}, {"hang", hang, 0.5}, {"both", both, 0.05}, {"duplicate", duplicate, 0.1}} {
		// Six standard deviations of a binomial count are below 950 here.
		if d := float64(x.got) - x.p*n; d > 950 || d < -950 {
			t.Errorf("%s: %d of %d, want about %v", x.name, x.got, n, x.p*n)
		}
	}
}

// TestParseChaos: the flag's text, and what is wrong with it.
func TestParseChaos(t *testing.T) {
	got, err := ParseChaos("seed=9, crash=0.1,late-reply=1,delay=1s,window=5ms")
	if want := (Chaos{Seed: 9, Crash: 0.1, LateReply: 1, Delay: time.Second, Window: 5 * time.Millisecond}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for text, want := range map[string]string{
		"crash":     "NAME=VALUE",
		"crash=2":   "must be in 0..1",
		"crash=NaN": "must be in 0..1",
		"crush=0.1": "there are seed, delay, window, latency, crash",
		"delay=5":   "missing unit",
		"seed=-1":   "invalid syntax",
	} {
		if _, err := ParseChaos(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
}
