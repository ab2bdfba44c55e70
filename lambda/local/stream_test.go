package local

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// streamed is what a streamed call brought.
type streamed struct {
	bytes    int
	wrong    int // where the first chunk that differs from the pattern starts; -1: none
	complete *types.InvokeWithResponseStreamCompleteEvent
}

// stream makes a streamed call with a client of its own: the streams of one
// client share state without a lock (smithy-go v1.28.9).
func (h *harness) stream(ctx context.Context, o order) (streamed, error) {
	got := streamed{wrong: -1}
	transport := &http.Transport{DisableKeepAlives: true}
	out, err := newClient(h.Endpoint(), transport).InvokeWithResponseStream(ctx, &lambda.InvokeWithResponseStreamInput{
		FunctionName: aws.String("f"), Payload: event(h.t, o), LogType: types.LogTypeTail,
	})
	if err != nil {
		return got, err
	}
	events := out.GetStream()
	for e := range events.Events() {
		switch v := e.(type) {
		case *types.InvokeWithResponseStreamResponseEventMemberPayloadChunk:
			want := make([]byte, len(v.Value.Payload))
			if _, err := io.ReadFull(&pattern{at: got.bytes, left: len(want)}, want); err != nil {
				return got, err
			}
			if got.wrong < 0 && !bytes.Equal(v.Value.Payload, want) {
				got.wrong = got.bytes
			}
			got.bytes += len(want)
		case *types.InvokeWithResponseStreamResponseEventMemberInvokeComplete:
			got.complete = &v.Value
		}
	}
	return got, errors.Join(events.Err(), events.Close())
}

// TestStream: 40 MiB arrive whole, at 2 MiB a second after the first 6.
func TestStream(t *testing.T) {
	h := newHarness(t, nil)
	h.clock.auto = time.Second
	began := h.clock.Now()
	const size = 40 << 20
	got, err := h.stream(testContext(t), order{Do: "stream", N: size})
	if err != nil {
		t.Fatal(err)
	}
	if got.bytes != size || got.wrong >= 0 || got.complete == nil || got.complete.ErrorCode != nil {
		t.Fatalf("%d bytes, first wrong chunk at %d, end %+v; want %d", got.bytes, got.wrong, got.complete, size)
	}
	log, err := base64.StdEncoding.DecodeString(aws.ToString(got.complete.LogResult))
	if err != nil || !strings.Contains(string(log), "REPORT RequestId: ") {
		t.Errorf("log %q, %v", log, err)
	}
	if took := h.clock.Now().Sub(began).Round(10 * time.Millisecond); took != 17*time.Second {
		t.Errorf("took %v, want 17s: 34 MiB at 2 MiB/s", took)
	}
	if b := h.Ledger()["f"]; b.BytesDown != size || b.BytesStreamed != size-streamFree {
		t.Errorf("bill %+v", b)
	}
}

// TestStreamEnds: how a streamed call can fail: before its first byte, in the
// middle, and past the limit.
func TestStreamEnds(t *testing.T) {
	h := newHarness(t, nil)
	h.clock.auto = time.Second
	for _, test := range []struct {
		order order
		code  string
		bytes int
	}{
		{order{Do: "fail"}, "errorString", 0},
		{order{Do: "stream-fail", N: 100_000}, "errorString", 100_000},
		{order{Do: "exit", N: 4}, "Runtime.ExitError", 0},
		{order{Do: "stream", N: MaxStreamedReply + 1}, "Function.ResponseSizeTooLarge", -1},
	} {
		got, err := h.stream(testContext(t), test.order)
		if err != nil || got.complete == nil {
			t.Errorf("%+v: %v, end %v", test.order, err, got.complete)
			continue
		}
		if code := aws.ToString(got.complete.ErrorCode); code != test.code || test.bytes >= 0 && got.bytes != test.bytes || got.wrong >= 0 {
			t.Errorf("%+v: %d bytes (wrong at %d), code %s; want %d, %s", test.order, got.bytes, got.wrong, code, test.bytes, test.code)
		}
	}
	_, err := h.client.InvokeWithResponseStream(testContext(t), &lambda.InvokeWithResponseStreamInput{FunctionName: aws.String("g")})
	var notFound *types.ResourceNotFoundException
	if !errors.As(err, &notFound) {
		t.Errorf("unknown function: %v", err)
	}
}

// TestBandwidth: payload and reply take their time, each way on its own.
func TestBandwidth(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.BandwidthBytesPerSec = 1 << 20 })
	h.clock.auto = 5 * time.Second
	began := h.clock.Now()
	out, err := h.invoke(order{Do: "long", N: 3 << 20, Print: strings.Repeat("x", 2<<20)})
	if err != nil || out.FunctionError != nil {
		t.Fatal(err, out)
	}
	if took := h.clock.Now().Sub(began).Round(10 * time.Millisecond); took != 5*time.Second {
		t.Errorf("2 MiB up and 3 MiB down at 1 MiB/s took %v, want 5s", took)
	}
}
