package local

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// status is the HTTP status behind an error of the SDK.
func status(err error) int {
	var e *awshttp.ResponseError
	if errors.As(err, &e) {
		return e.HTTPStatusCode()
	}
	return 0
}

// TestWorkerSees: what a worker gets with a call, and nothing of our environment.
func TestWorkerSees(t *testing.T) {
	t.Setenv("DORYLUS_SECRET", "not for workers")
	var tmp string
	t.Cleanup(func() { // after the service's end
		if _, err := os.Stat(tmp); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the worker's temporary folder %q is still there (%v)", tmp, err)
		}
	})
	h := newHarness(t, nil)
	a := h.tell(order{Do: "tell"}, func(in *lambda.InvokeInput) {
		in.ClientContext = aws.String(base64.StdEncoding.EncodeToString([]byte("{\"custom\":\n {\"who\":\"me\"}}")))
		in.Qualifier = aws.String("live")
	})
	if want := h.clock.Now().Add(30 * time.Second).UnixMilli(); a.Deadline != want {
		t.Errorf("deadline %d, want %d", a.Deadline, want)
	}
	if a.ARN != "arn:aws:lambda:us-east-1:000000000000:function:f:live" || a.Client != "me" || !strings.HasPrefix(a.Trace, "Root=1-") || len(a.Request) != 36 {
		t.Errorf("ARN %q, client %q, trace %q, request %q", a.ARN, a.Client, a.Trace, a.Request)
	}
	var names []string
	for _, v := range a.Env {
		name, value, _ := strings.Cut(v, "=")
		names = append(names, name)
		want := map[string]string{
			"AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
			"AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/f", "AWS_REGION": "us-east-1", "_HANDLER": "bootstrap", "GOMAXPROCS": "1",
		}
		if w, ok := want[name]; ok && value != w {
			t.Errorf("%s is %q, want %q", name, value, w)
		}
		if name == "TMPDIR" {
			tmp = value
			if err := os.WriteFile(filepath.Join(value, "left-behind"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	slices.Sort(names)
	want := []string{
		"AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_VERSION",
		"AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME", "AWS_LAMBDA_RUNTIME_API", "AWS_REGION",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "DORYLUS_TEST_WORKER", "GOMAXPROCS", "GOMEMLIMIT", "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT",
		"LANG", "PATH", "TMPDIR", "TZ", "_HANDLER", "_X_AMZN_TRACE_ID",
	}
	if !slices.Equal(names, want) {
		t.Errorf("variables %q,\nwant %q", names, want)
	}
}

// TestWarm: a free environment is used again, in the same process.
func TestWarm(t *testing.T) {
	h := newHarness(t, nil)
	for i := 1; i <= 3; i++ {
		out, err := h.invoke(order{})
		if err != nil {
			t.Fatal(err)
		}
		if a := h.answer(out); a.Calls != i || a.PID != h.waitKind(1, ColdStart).PID || aws.ToString(out.ExecutedVersion) != "$LATEST" || out.StatusCode != 200 {
			t.Errorf("call %d: the process %d says it is its call %d; version %v, status %d", i, a.PID, a.Calls, out.ExecutedVersion, out.StatusCode)
		}
		if e := h.waitKind(i, Invoked); e.Cold != (i == 1) {
			t.Errorf("call %d: cold is %v", i, e.Cold)
		}
	}
	if b := h.Ledger()["f"]; b.ColdStarts != 1 || b.Requests != 3 || b.Failed != 0 || b.BytesUp != 3*int64(len(`{"do":""}`)) || b.BytesDown < 1000 {
		t.Errorf("bill %+v", b)
	}
}

// TestOverlap: calls at the same time have an environment each.
func TestOverlap(t *testing.T) {
	h := newHarness(t, nil)
	l := newLatch(t)
	var all []<-chan result
	for range 4 {
		all = append(all, h.start(l.block()))
	}
	for range all {
		<-l.arrived
	}
	l.open()
	seen := make(map[int]bool)
	for _, c := range all {
		r := <-c
		if r.err != nil {
			t.Fatal(r.err)
		}
		seen[h.answer(r.out).PID] = true
	}
	if len(seen) != 4 {
		t.Errorf("4 calls at once ran in %d processes", len(seen))
	}
	if a := h.tell(order{}); a.Calls != 2 {
		t.Errorf("a later call is its process's call %d, want 2", a.Calls)
	}
}

// TestRefusals: the SDK's own types, with Lambda's statuses and fields.
func TestRefusals(t *testing.T) {
	h := newHarness(t, nil)
	_, err := h.invoke(order{}, func(in *lambda.InvokeInput) { in.FunctionName = aws.String("g") })
	var notFound *types.ResourceNotFoundException
	if !errors.As(err, &notFound) || status(err) != 404 || aws.ToString(notFound.Message) != "Function not found: arn:aws:lambda:us-east-1:000000000000:function:g" || aws.ToString(notFound.Type) != "User" {
		t.Errorf("unknown function: %v (%+v)", err, notFound)
	}

	_, err = h.invoke(order{}, func(in *lambda.InvokeInput) { in.Payload = []byte("\x93NUMPY") })
	var content *types.InvalidRequestContentException
	if !errors.As(err, &content) || status(err) != 400 || !strings.Contains(aws.ToString(content.Message), "Could not parse request body into json") {
		t.Errorf("no JSON: %v", err)
	}

	text := func(n int) func(*lambda.InvokeInput) {
		return func(in *lambda.InvokeInput) {
			const head, foot = `{"do":"fill","x":"`, `"}`
			in.Payload = append(append([]byte(head), bytes.Repeat([]byte("x"), n-len(head)-len(foot))...), foot...)
		}
	}
	var tooLarge *types.RequestTooLargeException
	_, err = h.invoke(order{}, text(MaxPayload+1))
	if !errors.As(err, &tooLarge) || status(err) != 413 || aws.ToString(tooLarge.Message) != "Request must be smaller than 6291456 bytes for the InvokeFunction operation" {
		t.Errorf("payload of 6291457 bytes: %v", err)
	}
	event := func(in *lambda.InvokeInput) { in.InvocationType = types.InvocationTypeEvent }
	_, err = h.invoke(order{}, text(MaxAsyncPayload+1), event)
	if !errors.As(err, &tooLarge) || status(err) != 413 {
		t.Errorf("asynchronous payload of 1048577 bytes: %v", err)
	}
	if n := h.Ledger().Total().Requests; n != 0 {
		t.Errorf("%d refused requests are billed", n)
	}
	out, err := h.invoke(order{}, text(MaxPayload))
	if err != nil || out.FunctionError != nil {
		t.Errorf("payload of 6291456 bytes: %v, %v", err, out)
	}

	out, err = h.invoke(order{}, func(in *lambda.InvokeInput) { in.InvocationType = types.InvocationTypeDryRun })
	if err != nil || out.StatusCode != 204 {
		t.Errorf("dry run: %v, %v", out, err)
	}
	var parameter *types.InvalidParameterValueException
	_, err = h.invoke(order{}, func(in *lambda.InvokeInput) { in.InvocationType = "Later" })
	if !errors.As(err, &parameter) || status(err) != 400 {
		t.Errorf("invocation type Later: %v", err)
	}
}

// TestSignature: unsigned and half-signed requests are refused.
func TestSignature(t *testing.T) {
	h := newHarness(t, nil)
	for _, test := range []struct{ header, want string }{
		{"", "MissingAuthenticationTokenException"},
		{"Bearer x", "IncompleteSignatureException"},
		{"AWS4-HMAC-SHA256 Credential=k/20261130/us-east-1/lambda/aws4_request, SignedHeaders=host", "IncompleteSignatureException"},
		{"AWS4-HMAC-SHA256 Credential=k/20261130/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0", "IncompleteSignatureException"},
	} {
		req, err := http.NewRequest("POST", h.Endpoint()+"/2015-03-31/functions/f/invocations", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if test.header != "" {
			req.Header.Set("Authorization", test.header)
		}
		transport := &http.Transport{}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		transport.CloseIdleConnections()
		if got := resp.Header.Get("X-Amzn-Errortype"); resp.StatusCode != 403 || got != test.want {
			t.Errorf("authorization %q: %d %s, want 403 %s", test.header, resp.StatusCode, got, test.want)
		}
	}
}

// TestNames: a function is found by every form of its name.
func TestNames(t *testing.T) {
	h := newHarness(t, nil)
	for _, name := range []string{"f", "f:live", "000000000000:function:f", "arn:aws:lambda:us-east-1:000000000000:function:f", "arn:aws:lambda:us-east-1:000000000000:function:f:3"} {
		out, err := h.client.GetFunctionConfiguration(testContext(t), &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(name)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if aws.ToString(out.FunctionName) != "f" || aws.ToInt32(out.MemorySize) != 256 || aws.ToInt32(out.Timeout) != 30 || out.State != types.StateActive {
			t.Errorf("%s: %+v", name, out)
		}
	}
	in := &lambda.GetFunctionInput{FunctionName: aws.String("f")}
	if err := lambda.NewFunctionActiveV2Waiter(h.client).Wait(testContext(t), in, time.Minute); err != nil {
		t.Errorf("waiter: %v", err)
	}
	if err := lambda.NewFunctionActiveWaiter(h.client).Wait(testContext(t), &lambda.GetFunctionConfigurationInput{FunctionName: in.FunctionName}, time.Minute); err != nil {
		t.Errorf("waiter: %v", err)
	}
	if _, err := h.client.ListFunctions(testContext(t), nil); status(err) != 404 || !strings.Contains(err.Error(), "GetFunctionConfiguration, not GET") {
		t.Errorf("an operation that is not there: %v", err)
	}
}
