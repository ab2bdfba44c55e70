package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// workerVariable makes the test program a worker.
const workerVariable = "DORYLUS_TEST_WORKER"

func TestMain(m *testing.M) {
	switch os.Getenv(workerVariable) {
	case "":
		os.Exit(m.Run())
	case "no-start":
		os.Exit(7)
	case "host":
		host()
	}
	lambda.Start(work)
}

// order is the event of a test's call: one thing to do.
type order struct {
	Do    string `json:"do"`
	N     int    `json:"n,omitempty"`
	Addr  string `json:"addr,omitempty"`
	Print string `json:"print,omitempty"`
}

// answer is what a worker tells of itself.
type answer struct {
	PID      int
	Calls    int
	Env      []string
	Request  string
	ARN      string
	Trace    string
	Client   string // a custom value of the client context
	Deadline int64  // ms
	Event    string
}

var (
	calls int
	kept  []byte
)

func work(ctx context.Context, event json.RawMessage) (any, error) {
	calls++
	var o order
	if err := json.Unmarshal(event, &o); err != nil {
		return nil, err
	}
	fmt.Print(o.Print)
	switch o.Do {
	case "", "tell":
		return tell(ctx, event), nil
	case "block": // until the test lets go
		conn, err := net.Dial("tcp", o.Addr)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		_, err = io.Copy(io.Discard, conn)
		return tell(ctx, event), err
	case "panic":
		panic("a worker's panic")
	case "exit":
		os.Exit(o.N)
	case "fail":
		return nil, errors.New("a worker's error")
	case "long": // a JSON string of N bytes, quotes included
		return raw(`"` + strings.Repeat("x", o.N-2) + `"`), nil
	case "stream":
		return &pattern{left: o.N}, nil
	case "stream-fail":
		return &pattern{left: o.N, err: errors.New("the reader broke")}, nil
	case "fill": // N MB of memory
		kept = bytes.Repeat([]byte("x"), o.N<<20)
		return len(kept), nil
	}
	return nil, fmt.Errorf("no such order: %s", event)
}

func tell(ctx context.Context, event json.RawMessage) answer {
	a := answer{PID: os.Getpid(), Calls: calls, Env: os.Environ(), Trace: os.Getenv("_X_AMZN_TRACE_ID"), Event: string(event)}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		a.Request, a.ARN, a.Client = lc.AwsRequestID, lc.InvokedFunctionArn, lc.ClientContext.Custom["who"]
	}
	if d, ok := ctx.Deadline(); ok {
		a.Deadline = d.UnixMilli()
	}
	return a
}

// raw is a reply that is sent as it is.
func raw(s string) io.Reader { return &plain{strings.NewReader(s)} }

// plain has nothing that JSON could show.
type plain struct{ r io.Reader }

func (p *plain) Read(b []byte) (int, error) { return p.r.Read(b) }

// pattern is a stream of left bytes that repeat after a prime number.
type pattern struct {
	at, left int
	err      error
}

var patternBytes = func() []byte {
	b := make([]byte, 65521)
	for i := range b {
		b[i] = byte(i ^ i>>8*37)
	}
	return b
}()

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		if p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.left)], patternBytes[p.at%len(patternBytes):])
	p.at, p.left = p.at+n, p.left-n
	return n, nil
}
