package local

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/aws/smithy-go/eventstream"
)

// serveStream runs a function and passes its reply on while it comes.
func (s *Service) serveStream(w http.ResponseWriter, r *http.Request) {
	in, err := s.read(r, "RequestResponse", "DryRun")
	if err != nil {
		s.rejected(r.PathValue("name"), "", err)
		err.write(w)
		return
	}
	w.Header().Set("X-Amzn-Requestid", in.call.id)
	if in.kind == "DryRun" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := s.front(in); err != nil {
		err.write(w)
		return
	}
	out := &eventWriter{w: w, trace: in.call.trace, encoder: eventstream.NewEncoder()}
	if in.call.sink = out; in.call.faults.lose {
		in.call.sink = discard{}
	}
	end := s.performWithTwin(in)
	s.beforeReply(in)
	if end.api != nil {
		if out.begun {
			panic(http.ErrAbortHandler) // too late for a status: the caller sees a broken stream
		}
		end.api.write(w)
		return
	}
	out.complete(end, in.tail)
}

// eventWriter writes a reply as the events of an event stream.
type eventWriter struct {
	w       http.ResponseWriter
	trace   string
	encoder *eventstream.Encoder
	begun   bool
	err     error // the caller has left; what follows is dropped
}

// chunk is the size of an event of a reply, in bytes.
const chunk = 64 << 10

func (o *eventWriter) take(body io.Reader, c *call, e *environment) (reply, bool, error) {
	return passOn(body, c, e, func(b []byte) {
		o.event("PayloadChunk", "application/octet-stream", b)
	})
}

// discard reads a streamed reply that nobody gets, at the speed of one that
// somebody does.
type discard struct{}

func (discard) take(body io.Reader, c *call, e *environment) (reply, bool, error) {
	return passOn(body, c, e, func([]byte) {})
}

// passOn reads a reply piece by piece, no faster than Lambda lets it through.
func passOn(body io.Reader, c *call, e *environment, to func([]byte)) (reply, bool, error) {
	var r reply
	cap := &pacer{clock: e.s.opt.Clock, rate: streamRate, free: streamFree}
	buf := make([]byte, chunk)
	for {
		n, err := io.ReadFull(body, buf[:1]) // wait for some, then take what is there
		if n == 1 {
			var more int
			if more, err = body.Read(buf[1:]); more > 0 {
				n += more
			}
		}
		if n > 0 {
			if r.bytes += int64(n); r.bytes > MaxStreamedReply {
				r.bytes -= int64(n)
				r.errorType = "Function.ResponseSizeTooLarge"
				r.payload = functionError(r.errorType, "Response payload size exceeded maximum allowed payload size (%d bytes).", MaxStreamedReply)
				return r, true, nil
			}
			cap.wait(int64(n), c.over)
			e.down.wait(int64(n), c.over)
			to(buf[:n])
			r.streamed = max(0, r.bytes-streamFree)
		}
		switch {
		case errors.Is(err, io.EOF):
			return r, false, nil
		case err != nil:
			return r, false, err
		}
	}
}

// event writes one event and sends it off.
func (o *eventWriter) event(kind, contentType string, payload []byte) {
	if o.err != nil {
		return
	}
	if !o.begun {
		o.begun = true
		h := o.w.Header()
		h.Set("Content-Type", "application/vnd.amazon.eventstream")
		h.Set("X-Amz-Executed-Version", version)
		h.Set("X-Amzn-Trace-Id", o.trace)
	}
	var headers eventstream.Headers
	headers.Set(eventstream.MessageTypeHeader, eventstream.StringValue(eventstream.EventMessageType))
	headers.Set(eventstream.EventTypeHeader, eventstream.StringValue(kind))
	headers.Set(eventstream.ContentTypeHeader, eventstream.StringValue(contentType))
	if o.err = o.encoder.Encode(o.w, eventstream.Message{Headers: headers, Payload: payload}); o.err == nil {
		o.err = http.NewResponseController(o.w).Flush()
	}
}

// complete writes the last event, which says how the call ended.
func (o *eventWriter) complete(end outcome, tail bool) {
	var last struct {
		ErrorCode    string `json:",omitempty"`
		ErrorDetails string `json:",omitempty"`
		LogResult    string `json:",omitempty"`
	}
	if end.reply.errorType != "" {
		last.ErrorCode, last.ErrorDetails = end.reply.errorType, string(end.reply.payload)
	}
	if tail {
		last.LogResult = base64.StdEncoding.EncodeToString([]byte(end.log))
	}
	b, err := json.Marshal(last)
	if err != nil {
		panic(err) // strings always marshal
	}
	o.event("InvokeComplete", "application/json", b)
}
