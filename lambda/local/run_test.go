package local

import (
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// next checks that the call after a failed one runs in a new process.
func (h *harness) next(dead int) {
	h.t.Helper()
	if a := h.tell(order{}); a.Calls != 1 || a.PID == dead {
		h.t.Errorf("after the end of process %d: call %d of process %d, want the first of another", dead, a.Calls, a.PID)
	}
}

// TestFunctionErrors: how a call can fail in the function, and what replaces it.
func TestFunctionErrors(t *testing.T) {
	for _, test := range []struct {
		order   order
		kind    string
		message string // part of it
		ends    bool   // its environment
	}{
		{order{Do: "fail"}, "errorString", "a worker's error", false},
		{order{Do: "panic"}, "string", "a worker's panic", true},
		{order{Do: "exit", N: 3}, "Runtime.ExitError", "Runtime exited with error: exit status 3", true},
		{order{Do: "exit"}, "Runtime.ExitError", "Runtime exited with error: exit status 0", true},
		{order{Do: "long", N: MaxReply + 1}, "Function.ResponseSizeTooLarge", "(6291556 bytes)", true},
		{order{Do: "stream-fail", N: 100}, "errorString", "the reader broke", false},
	} {
		t.Run(fmt.Sprintf("%s %d", test.order.Do, test.order.N), func(t *testing.T) {
			h := newHarness(t, nil)
			out, err := h.invoke(test.order)
			if message := failed(t, result{out, err}, test.kind); !strings.Contains(message, test.message) {
				t.Errorf("message %q, want %q in it", message, test.message)
			}
			if test.order.Do == "panic" && !strings.Contains(string(out.Payload), "stackTrace") {
				t.Errorf("no stack trace in %s", out.Payload)
			}
			pid := h.waitKind(1, ColdStart).PID
			if test.ends {
				h.waitKind(1, Ended)
				h.next(pid)
			} else if a := h.tell(order{}); a.PID != pid {
				t.Errorf("an error that the function reported ended its process")
			}
			if b := h.Ledger()["f"]; b.Failed != 1 || b.Requests != 2 {
				t.Errorf("bill %+v, want 2 requests, 1 failed", b)
			}
		})
	}
}

// TestLongestReply: the last byte that Lambda lets through.
func TestLongestReply(t *testing.T) {
	h := newHarness(t, nil)
	out, err := h.invoke(order{Do: "long", N: MaxReply})
	if err != nil || out.FunctionError != nil || len(out.Payload) != MaxReply {
		t.Fatalf("reply of %d bytes: %v, %v", MaxReply, err, len(out.Payload))
	}
}

// TestNoStart: a worker that ends before it asks for a call fails the call.
func TestNoStart(t *testing.T) {
	h := newHarness(t, func(o *Options) {
		f := testFunction(t)
		f.Env[workerVariable] = "no-start"
		o.Functions["f"] = f
	})
	out, err := h.invoke(order{})
	if m := failed(t, result{out, err}, "Runtime.ExitError"); !strings.Contains(m, "exit status 7") {
		t.Errorf("message %q", m)
	}
}

// TestTimeout: a worker that hangs is killed when its time is up, and the time is billed.
func TestTimeout(t *testing.T) {
	h := newHarness(t, nil)
	l := newLatch(t)
	call := h.start(l.block(), func(in *lambda.InvokeInput) { in.LogType = types.LogTypeTail })
	<-l.arrived
	h.clock.advance(30*time.Second - time.Millisecond)
	select {
	case r := <-call:
		t.Fatalf("ended before its time: %+v", r)
	default:
	}
	h.clock.advance(time.Millisecond)
	r := <-call
	if m := failed(t, r, "Sandbox.Timedout"); !strings.HasSuffix(m, "Task timed out after 30.00 seconds") {
		t.Errorf("message %q", m)
	}
	log, err := base64.StdEncoding.DecodeString(aws.ToString(r.out.LogResult))
	if err != nil || !strings.Contains(string(log), "Duration: 30000.00 ms\tBilled Duration: 30000 ms\tMemory Size: 256 MB") || !strings.Contains(string(log), "Status: timeout") {
		t.Errorf("log %q, %v", log, err)
	}
	if b := h.Ledger()["f"]; b.BilledMS != 30_000 || b.MBMS != 30_000*256 || b.GBSeconds() != 7.5 {
		t.Errorf("bill %+v (%v GB-s), want 30 s of 256 MB, 7.5 GB-s", b, b.GBSeconds())
	}
	h.next(h.waitKind(1, ColdStart).PID)
}

// TestKilled: SIGKILL of the worker in the middle of a call.
func TestKilled(t *testing.T) {
	h := newHarness(t, nil)
	l := newLatch(t)
	call := h.start(l.block())
	<-l.arrived
	pid := h.waitKind(1, Invoked).PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if m := failed(t, <-call, "Runtime.ExitError"); !strings.Contains(m, "signal: killed") {
		t.Errorf("message %q", m)
	}
	h.next(pid)
}

// TestCallerLeaves: a call runs on when its caller has gone.
func TestCallerLeaves(t *testing.T) {
	h := newHarness(t, nil)
	l := newLatch(t)
	transport := &http1{}
	call := make(chan error, 1)
	go func() {
		_, err := newClient(h.Endpoint(), transport).Invoke(testContext(t), &lambda.InvokeInput{FunctionName: aws.String("f"), Payload: event(t, l.block())})
		call <- err
	}()
	<-l.arrived
	transport.cut()
	if err := <-call; err == nil {
		t.Error("the cut connection went unnoticed")
	}
	l.open()
	if e := h.waitKind(1, Finished); e.ErrorType != "" {
		t.Errorf("the call ended with %s", e.ErrorType)
	}
}

// TestReport: the log of a call ends with the line that Lambda prints.
func TestReport(t *testing.T) {
	h := newHarness(t, nil)
	l := newLatch(t)
	o := l.block()
	o.Print = strings.Repeat("old\n", 2000) + "\nlast line, left open"
	call := h.start(o, func(in *lambda.InvokeInput) { in.LogType = types.LogTypeTail })
	<-l.arrived
	h.clock.advance(1234500 * time.Microsecond)
	l.open()
	r := <-call
	if r.err != nil {
		t.Fatal(r.err)
	}
	log, err := base64.StdEncoding.DecodeString(aws.ToString(r.out.LogResult))
	if err != nil || len(log) != logTail {
		t.Fatalf("log of %d bytes (%v), want the last %d", len(log), err, logTail)
	}
	id := h.answer(r.out).Request
	want := regexp.MustCompile(`old\n\nlast line, left open\nEND RequestId: ` + id + `\nREPORT RequestId: ` + id +
		`\tDuration: 1234\.50 ms\tBilled Duration: 1235 ms\tMemory Size: 256 MB\tMax Memory Used: [1-9][0-9]* MB\t\n$`)
	if runtime.GOOS == "linux" && !want.Match(log) {
		t.Errorf("log ends with %q", log[len(log)-300:])
	}
	if !strings.HasPrefix(h.log.String(), "START RequestId: "+id+" Version: $LATEST\nold\n") {
		t.Errorf("the service's log starts with %q", h.log.String()[:60])
	}
}

// TestInit: the start of an environment is billed with its first call, once; the
// delay before the process starts is not.
func TestInit(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.ColdStartDelay = 3 * time.Second })
	call := h.start(order{})
	h.clock.waitTimer(t, 3*time.Second)
	if n := h.count(func(e Event) bool { return e.Kind == ColdStart }); n != 0 {
		t.Error("the process started before its delay")
	}
	h.clock.advance(3 * time.Second)
	if r := <-call; r.err != nil {
		t.Fatal(r.err)
	}
	r := report{call: newCall(request{id: "i"}), took: 1200 * time.Microsecond, init: 40100 * time.Microsecond, memoryMB: 128, peakMB: 9}
	if want := "END RequestId: i\nREPORT RequestId: i\tDuration: 1.20 ms\tBilled Duration: 42 ms\tMemory Size: 128 MB\tMax Memory Used: 9 MB\tInit Duration: 40.10 ms\t\n"; string(r.lines()) != want {
		t.Errorf("report %q, want %q", r.lines(), want)
	}
	if b := h.Ledger()["f"]; b.BilledMS != 0 || b.InitMS != 0 {
		t.Errorf("bill %+v: the clock stood still", b)
	}
}

// processState is the letter of a process's state, from /proc.
func processState(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

// TestFreeze: an environment without a call is stopped, and goes on with the next.
func TestFreeze(t *testing.T) {
	if !canFreeze {
		t.Skip("workers are frozen on Linux only")
	}
	for _, off := range []bool{false, true} {
		h := newHarness(t, func(o *Options) { o.NoFreeze = off })
		a := h.tell(order{})
		ctx := testContext(t)
		for !off && processState(a.PID) != "T" {
			if runtime.Gosched(); ctx.Err() != nil {
				t.Fatalf("process %d is in state %s, want T", a.PID, processState(a.PID))
			}
		}
		if s := processState(a.PID); off && s == "T" {
			t.Errorf("with NoFreeze process %d is stopped", a.PID)
		}
		if b := h.tell(order{}); b.PID != a.PID || b.Calls != 2 {
			t.Errorf("after the thaw: call %d of process %d, want 2 of %d", b.Calls, b.PID, a.PID)
		}
	}
}

// TestReap: an environment that stays idle ends; a call in between starts its time anew.
func TestReap(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.IdleReap = time.Minute })
	first := h.tell(order{})
	h.clock.advance(59 * time.Second)
	if a := h.tell(order{}); a.PID != first.PID {
		t.Fatal("ended too early")
	}
	h.clock.advance(59 * time.Second)
	if n := h.count(func(e Event) bool { return e.Kind == Ended }); n != 0 {
		t.Fatal("ended too early after a call")
	}
	h.clock.advance(time.Second)
	if e := h.waitKind(1, Ended); e.PID != first.PID || e.Text != "idle for 1m0s" {
		t.Errorf("event %+v", e)
	}
	h.next(first.PID)
}

// TestMemory: a worker that takes more than its memory dies; one that stays below
// its limit does not.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is limited on Linux only")
	}
	h := newHarness(t, nil)
	// The race detector maps several bytes of its own for each of the heap.
	if out, err := h.invoke(order{Do: "fill", N: 150}); !raceDetector && (err != nil || out.FunctionError != nil) {
		t.Fatalf("150 MB in 256: %v, %s", err, out.Payload)
	}
	if n := h.waitKind(1, ColdStart); !strings.Contains(n.Text, "GOMEMLIMIT=230MiB and RLIMIT_DATA (cgroups are switched off)") {
		t.Errorf("limits: %s", n.Text)
	}
	out, err := h.invoke(order{Do: "fill", N: 600})
	failed(t, result{out, err}, "Runtime.ExitError")
}
