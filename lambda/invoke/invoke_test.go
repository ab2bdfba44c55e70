package invoke

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"dorylus/engine"
	"dorylus/engine/testkit"
	"dorylus/lambda/fleet"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// service answers calls; it returns a launcher that calls it, and the invoices.
func service(t *testing.T, answer http.HandlerFunc) (*Launcher, *[]engine.LambdaUsed) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	for _, name := range []string{"AWS_PROFILE", "AWS_CA_BUNDLE", "AWS_REGION"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	used := &[]engine.LambdaUsed{}
	l, err := New(t.Context(), Options{
		Endpoint: server.URL, Function: "worker", Addresses: []string{"10.1.2.3:4"}, Certificate: "PEM", Modelled: true,
		Used: func(u engine.LambdaUsed) { *used = append(*used, u) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, used
}

const reportLine = "END RequestId: 1\nREPORT RequestId: 1\tDuration: 102.25 ms\tBilled Duration: 133 ms\tMemory Size: 1769 MB\tMax Memory Used: 36 MB\tInit Duration: 30.10 ms\t\n"

func TestLaunchInvitesAndBills(t *testing.T) {
	testkit.Leaks(t)
	var got worker.Invitation
	l, used := service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/2015-03-31/functions/worker/invocations" || r.Header.Get("X-Amz-Log-Type") != "Tail" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte(reportLine)))
		io.WriteString(w, "{}")
	})
	if err := l.Launch(t.Context(), worker.Invitation{Worker: 5, Token: "secret"}); err != nil {
		t.Fatal(err)
	}
	if got.Worker != 5 || got.Token != "secret" || got.Certificate != "PEM" || len(got.Addresses) != 1 || got.Addresses[0] != "10.1.2.3:4" {
		t.Errorf("the worker was invited with %+v", got)
	}
	want := engine.LambdaUsed{Arch: "x86_64", MemoryMB: 1769, BilledMS: 133, InitMS: 30, Modelled: true}
	if len(*used) != 1 || (*used)[0] != want {
		t.Errorf("billed %+v, want %+v", *used, want)
	}
}

func TestReportsThatAreNone(t *testing.T) {
	for _, log := range []string{"", "START", "REPORT RequestId: 1 Billed Duration: many ms", "REPORT Billed Duration: 5 ms without a size"} {
		if u, ok := parseReport(log); ok {
			t.Errorf("%q was read as %+v", log, u)
		}
	}
	if u, ok := parseReport(reportLine + strings.ReplaceAll(reportLine, "133", "7")); !ok || u.BilledMS != 7 {
		t.Errorf("of two reports: %+v, %v, want the last one", u, ok)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	testkit.Leaks(t)
	for _, c := range []struct {
		kind   string
		status int
		want   string
		never  bool
	}{
		{"ResourceNotFoundException", 404, "dorylus-engine lambda deploy", true},
		{"TooManyRequestsException", 429, "throttled", false},
		{"RequestTooLargeException", 413, "use more --intervals", false},
		{"ServiceException", 500, "ServiceException", false},
		{"AccessDeniedException", 403, "check the AWS credentials", true},
		{"UnrecognizedClientException", 403, "check the AWS credentials", true},
		{"InvalidSignatureException", 403, "check the AWS credentials", true},
		{"ExpiredTokenException", 403, "check the AWS credentials", true},
	} {
		calls := atomic.Int64{}
		l, _ := service(t, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("X-Amzn-Errortype", c.kind)
			w.WriteHeader(c.status)
			io.WriteString(w, `{"Type":"User","message":"no","Reason":"ConcurrentInvocationLimitExceeded"}`)
		})
		err := l.Launch(t.Context(), worker.Invitation{})
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, fleet.ErrNever) != c.never {
			t.Errorf("%s: %v", c.kind, err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%s: %d calls: the fleet decides about others", c.kind, n)
		}
		if refused := l.Refused(); (refused == 1) != (c.status == 429) {
			t.Errorf("%s: %d refusals are counted", c.kind, refused)
		}
	}
	for _, c := range []struct {
		kind, want string
		large      bool
	}{{"Runtime.ExitError", "signal: killed", false}, {"Function.ResponseSizeTooLarge", "use more --intervals", true}} {
		l, _ := service(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			io.WriteString(w, `{"errorType":"`+c.kind+`","errorMessage":"signal: killed"}`)
		})
		err := l.Launch(t.Context(), worker.Invitation{})
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, fleet.ErrTooLarge) != c.large {
			t.Errorf("%s: %v", c.kind, err)
		}
	}
}

func TestThereAreNoCredentials(t *testing.T) {
	for _, name := range []string{"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	l, err := New(t.Context(), Options{Region: "eu-central-1", Function: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	err = l.Launch(t.Context(), worker.Invitation{})
	if !errors.Is(err, fleet.ErrNever) || !strings.Contains(err.Error(), "check the AWS credentials") {
		t.Errorf("without credentials: %v", err)
	}
}

// inline runs f as the graph server's side of an inline launch.
func inline(t *testing.T, l *Launcher, f func(conn wire.Conn, stop func()) error) error {
	t.Helper()
	return (&Inline{Launcher: l, Serve: f}).Launch(t.Context(), worker.Invitation{Worker: 2, Token: "once"})
}

func TestInlineCallsOncePerTask(t *testing.T) {
	testkit.Leaks(t)
	var seen [][]*wire.Message
	l, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		var in worker.Invitation
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		msgs, err := wire.Unpack(in.Messages)
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, msgs)
		out, _ := wire.Pack([]*wire.Message{{Result: &wire.Result{ID: msgs[len(msgs)-1].Block.ID, Last: true}}})
		json.NewEncoder(w).Encode(worker.Answer{Messages: out})
	})
	err := inline(t, l, func(conn wire.Conn, stop func()) error {
		hello, err := conn.Recv()
		if err != nil || hello.Hello == nil || hello.Hello.Token != "once" || hello.Hello.Worker != 2 {
			t.Errorf("hello: %+v, %v", hello, err)
		}
		send := func(m *wire.Message) {
			if err := conn.Send(m); err != nil {
				t.Error(err)
			}
		}
		send(&wire.Message{Job: &wire.Job{Steps: 3}})
		for id := range int64(2) {
			send(&wire.Message{Task: &wire.Task{ID: id, Steps: []wire.Step{{Step: 0, Blocks: []int{0}}, {Step: 1, Blocks: []int{0, 1}}}}})
			for range 3 {
				send(&wire.Message{Block: &wire.Block{ID: id}, Parts: [][]byte{{1}}})
			}
			if m, err := conn.Recv(); err != nil || m.Result == nil || m.Result.ID != id {
				t.Errorf("task %d: %+v, %v", id, m, err)
			}
		}
		send(&wire.Message{Stop: &wire.Stop{Why: "done"}})
		if m, err := conn.Recv(); err != nil || m.Bye == nil {
			t.Errorf("bye: %+v, %v", m, err)
		}
		_, err = conn.Recv()
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if len(seen) != 2 || len(seen[0]) != 5 || len(seen[1]) != 5 || seen[1][0].Job == nil {
		t.Errorf("the calls brought %d messages each time %v", len(seen), seen)
	}
}

func TestInlineRefusesWhatDoesNotFit(t *testing.T) {
	testkit.Leaks(t)
	l, _ := service(t, func(http.ResponseWriter, *http.Request) { t.Error("a call was made") })
	err := inline(t, l, func(conn wire.Conn, _ func()) error {
		conn.Send(&wire.Message{Task: &wire.Task{Steps: []wire.Step{{Blocks: []int{0}}}}})
		sent := conn.Send(&wire.Message{Block: &wire.Block{}, Parts: [][]byte{make([]byte, MaxPayload)}})
		if !errors.Is(sent, fleet.ErrTooLarge) || !strings.Contains(sent.Error(), "Lambda takes 6291456") || !strings.Contains(sent.Error(), "use more --intervals") {
			t.Errorf("too much for a payload: %v", sent)
		}
		conn.Recv() // hello
		conn.Send(&wire.Message{Stop: &wire.Stop{Why: "done"}})
		if m, err := conn.Recv(); err != nil || m.Bye == nil {
			t.Errorf("the stream behind it: %+v, %v", m, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestInlineEndsWithItsContext(t *testing.T) {
	testkit.Leaks(t)
	l, _ := service(t, func(http.ResponseWriter, *http.Request) {})
	ctx, cancel := context.WithCancel(t.Context())
	err := (&Inline{Launcher: l, Serve: func(conn wire.Conn, _ func()) error {
		conn.Recv() // hello
		cancel()
		_, err := conn.Recv()
		return err
	}}).Launch(ctx, worker.Invitation{})
	if err != nil {
		t.Errorf("a run that ended: %v", err)
	}
}

// Somebody may receive while the stream's end is handled: wire.Late does. Would it sleep
// for ever, the bubble would be at a deadlock.
func TestInlineWakesWhoReceivesWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		err := inline(t, &Launcher{}, func(conn wire.Conn, _ func()) error {
			conn.Recv() // hello
			go func() {
				_, err := conn.Recv()
				got <- err
			}()
			synctest.Wait()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := <-got; !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
	})
}
