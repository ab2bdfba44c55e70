package local

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// api is what the SDK talks to.
func (s *Service) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", s.serveInvoke)
	mux.HandleFunc("POST /2021-11-15/functions/{name}/response-streaming-invocations", s.serveStream)
	mux.HandleFunc("GET /2015-03-31/functions/{name}", s.serveFunction)
	mux.HandleFunc("GET /2015-03-31/functions/{name}/configuration", s.serveConfiguration)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		(&apiError{status: http.StatusNotFound, kind: "UnknownOperationException",
			text: fmt.Sprintf("the local Lambda service has Invoke, InvokeWithResponseStream, GetFunction and GetFunctionConfiguration, not %s %s", r.Method, r.URL.Path)}).write(w)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.stopping: // nobody waits for this request
			errClosing.write(w)
			return
		default:
		}
		w.Header().Set("X-Amzn-Requestid", newID())
		if err := checkSignature(r.Header.Get("Authorization")); err != nil {
			drop(r.Body)
			s.rejected("", "", err)
			err.write(w)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// rejected records a request that does not run.
func (s *Service) rejected(function, id string, err *apiError) {
	if err.status == http.StatusTooManyRequests {
		s.book.add(function, Bill{Throttled: 1})
	}
	text := err.text
	if err.reason != "" {
		text = err.reason
	}
	s.emit(Event{Kind: Rejected, Function: function, RequestID: id, Status: err.status, ErrorType: err.kind, Text: text})
}

// invocation is a checked request to run a function.
type invocation struct {
	fn   *function
	call request
	kind string
	tail bool // the caller wants the log
}

// lookup finds the function that a path names, by name or ARN, and the ARN of
// the call.
func (s *Service) lookup(r *http.Request) (*function, string, *apiError) {
	name, qualifier := splitName(r.PathValue("name"))
	if q := r.URL.Query().Get("Qualifier"); q != "" {
		qualifier = q
	}
	arn := fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", s.opt.Region, account, name)
	if qualifier != "" {
		arn += ":" + qualifier
	}
	f := s.functions[name]
	if f == nil {
		return nil, "", errNotFound(arn)
	}
	return f, arn, nil
}

// account is the owner of all functions.
const account = "000000000000"

// splitName takes name, name:qualifier, ACCOUNT:function:name and a full ARN.
func splitName(text string) (name, qualifier string) {
	if _, after, ok := strings.Cut(text, "function:"); ok {
		text = after
	}
	name, qualifier, _ = strings.Cut(text, ":")
	return name, qualifier
}

// read checks a request; its limits depend on how the call shall run.
func (s *Service) read(r *http.Request, kinds ...string) (*invocation, *apiError) {
	f, arn, err := s.lookup(r)
	if err != nil {
		drop(r.Body)
		return nil, err
	}
	in := &invocation{fn: f, kind: r.Header.Get("X-Amz-Invocation-Type"), tail: r.Header.Get("X-Amz-Log-Type") == "Tail"}
	if in.kind == "" {
		in.kind = "RequestResponse"
	}
	known := false
	for _, k := range kinds {
		known = known || in.kind == k
	}
	if !known {
		drop(r.Body)
		return nil, errParameter("invocation type %q: must be one of %s", in.kind, strings.Join(kinds, ", "))
	}
	limit := MaxPayload
	if in.kind == "Event" {
		limit = MaxAsyncPayload
	}
	payload, err := readPayload(r.Body, limit)
	if err != nil {
		return nil, err
	}
	client, err := clientContext(r.Header.Get("X-Amz-Client-Context"))
	if err != nil {
		return nil, err
	}
	trace := r.Header.Get("X-Amzn-Trace-Id")
	if trace == "" {
		trace = newTrace(s.opt.Clock.Now())
	}
	in.call = request{id: newID(), fn: f, arn: arn, trace: trace, client: client, payload: payload}
	return in, nil
}

// readPayload reads a body of JSON. The rest of one that is too long is read and
// dropped, so that the caller gets the answer and not a broken connection.
func readPayload(body io.Reader, limit int) ([]byte, *apiError) {
	b, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if err != nil {
		return nil, errContent("read the request body: %v", err)
	}
	if len(b) > limit {
		drop(body)
		return nil, errTooLarge(limit)
	}
	if len(b) == 0 {
		return []byte("{}"), nil
	}
	if !json.Valid(b) {
		var v json.RawMessage
		return nil, errContent("Could not parse request body into json: %v", json.Unmarshal(b, &v))
	}
	return b, nil
}

func drop(body io.Reader) {
	const most = 256 << 20
	_, _ = io.Copy(io.Discard, io.LimitReader(body, most))
}

// clientContext decodes what the caller says about itself.
func clientContext(header string) (string, *apiError) {
	if header == "" {
		return "", nil
	}
	if len(header) > maxContext {
		return "", errContent("Client context must be smaller than %d bytes, has %d", maxContext+1, len(header))
	}
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil || !json.Valid(text) {
		return "", errContent("Client context must be a valid Base64-encoded JSON object.")
	}
	return strings.Join(strings.Fields(string(text)), " "), nil // a header has one line
}

// front applies the faults that strike before a call runs.
func (s *Service) front(in *invocation) *apiError {
	in.call.faults = s.chaos.Load().at(s.requests.Add(1) - 1)
	var err *apiError
	switch {
	case in.call.faults.serverError:
		err = errService("chaos: this request was to fail")
	case in.call.faults.throttle:
		err = errThrottled(overConcurrency, 0)
	default:
		return nil
	}
	s.emit(Event{Kind: Fault, Function: in.fn.name, RequestID: in.call.id, Text: err.kind})
	s.rejected(in.fn.name, in.call.id, err)
	return err
}

// serveInvoke runs a function and answers with its reply, or takes it on for later.
func (s *Service) serveInvoke(w http.ResponseWriter, r *http.Request) {
	in, err := s.read(r, "RequestResponse", "Event", "DryRun")
	if err != nil {
		s.rejected(r.PathValue("name"), "", err)
		err.write(w)
		return
	}
	h := w.Header()
	h.Set("X-Amzn-Requestid", in.call.id)
	if in.kind == "DryRun" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := s.front(in); err != nil {
		err.write(w)
		return
	}
	if in.kind == "Event" {
		if err := s.enqueue(in); err != nil {
			s.rejected(in.fn.name, in.call.id, err)
			err.write(w)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	in.call.sink = buffered{}
	out := s.performWithTwin(in)
	s.beforeReply(in)
	if out.api != nil {
		out.api.write(w)
		return
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Amz-Executed-Version", version)
	h.Set("X-Amzn-Trace-Id", in.call.trace)
	if out.reply.errorType != "" {
		h.Set("X-Amz-Function-Error", "Unhandled")
	}
	if in.tail {
		h.Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte(out.log)))
	}
	h.Set("Content-Length", strconv.Itoa(len(out.reply.payload)))
	_, _ = w.Write(out.reply.payload) // the caller may have left
}

// performWithTwin runs the call, and beside it a second time if chaos wants so.
func (s *Service) performWithTwin(in *invocation) outcome {
	if in.call.faults.duplicate {
		twin := newCall(in.call)
		twin.faults, twin.sink = faults{}, discard{}
		s.emit(Event{Kind: Fault, Function: in.fn.name, RequestID: in.call.id, Text: "duplicate"})
		s.running.Go(func() { s.perform(twin) })
	}
	return s.perform(newCall(in.call))
}

// beforeReply applies the faults that strike a reply on its way.
func (s *Service) beforeReply(in *invocation) {
	if in.call.faults.late {
		s.emit(Event{Kind: Fault, Function: in.fn.name, RequestID: in.call.id, Text: "late reply"})
		pause(s.opt.Clock, s.chaos.Load().Delay, s.stopping)
	}
	if in.call.faults.lose {
		s.emit(Event{Kind: Fault, Function: in.fn.name, RequestID: in.call.id, Text: "lost reply"})
		panic(http.ErrAbortHandler) // cuts the connection
	}
}
