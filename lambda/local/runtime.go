package local

import (
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
)

// maxErrorBody bounds what a worker may report as an error, in bytes.
const maxErrorBody = MaxReply

// runtimeAPI is what the worker talks to.
func (e *environment) runtimeAPI() http.Handler {
	const base = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base+"invocation/next", e.serveNext)
	mux.HandleFunc("POST "+base+"invocation/{id}/response", e.serveResponse)
	mux.HandleFunc("POST "+base+"invocation/{id}/error", e.serveError)
	mux.HandleFunc("POST "+base+"init/error", e.serveInitError)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e.handlers.enter() {
			defer e.handlers.leave()
			mux.ServeHTTP(w, r)
		}
	})
}

// serveNext says that the worker is free and gives it the next call.
func (e *environment) serveNext(w http.ResponseWriter, r *http.Request) {
	select {
	case e.parked <- struct{}{}:
	default: // it asked before, on a connection that broke
	}
	var c *call
	select {
	case c = <-e.work:
	case <-r.Context().Done():
		return
	case <-e.proc.gone:
		return
	}
	e.up.wait(int64(len(c.payload)), c.over)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(c.payload)))
	h.Set("Lambda-Runtime-Aws-Request-Id", c.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(c.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", c.arn)
	h.Set("Lambda-Runtime-Trace-Id", c.trace)
	if c.client != "" {
		h.Set("Lambda-Runtime-Client-Context", c.client)
	}
	_, _ = w.Write(c.payload) // a worker that is gone is noticed by its end
}

// serveResponse takes the reply of the current call, streamed or not.
func (e *environment) serveResponse(w http.ResponseWriter, r *http.Request) {
	e.accept(w, r, func(c *call) (reply, bool, error) {
		got, tooLarge, err := c.sink.take(r.Body, c, e)
		if err != nil || tooLarge {
			return got, tooLarge, err
		}
		// A reader that failed half-way says so behind the body.
		if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
			text, err := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
			if err != nil || len(text) == 0 {
				text = functionError(kind, "the reply broke off after %d bytes", got.bytes)
			}
			got.payload, got.errorType = text, errorType(text, kind)
		}
		return got, false, nil
	})
}

// serveError takes the error of the current call.
func (e *environment) serveError(w http.ResponseWriter, r *http.Request) {
	e.accept(w, r, func(*call) (reply, bool, error) {
		text, err := io.ReadAll(io.LimitReader(r.Body, maxErrorBody))
		return reply{
			payload: text, bytes: int64(len(text)),
			errorType: errorType(text, r.Header.Get("Lambda-Runtime-Function-Error-Type")),
		}, false, err
	})
}

// accept takes one reply of the call that the request names, if it is still the
// current one and nothing has replied yet.
func (e *environment) accept(w http.ResponseWriter, r *http.Request, take func(*call) (reply, bool, error)) {
	e.mu.Lock()
	c := e.mu.current
	e.mu.Unlock()
	if c == nil || c.id != r.PathValue("id") {
		runtimeStatus(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return
	}
	if c.struckEarly() {
		select { // the reply is never read
		case <-e.proc.gone:
		case <-r.Context().Done():
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed || c.mu.done {
		runtimeStatus(w, http.StatusBadRequest, "InvalidStateTransition", errLate.Error())
		return
	}
	got, tooLarge, err := take(c)
	if err != nil {
		runtimeStatus(w, http.StatusBadRequest, "InvalidRequest", err.Error())
		return // a broken connection: the worker's end or the timeout follows
	}
	c.mu.reply, c.mu.done = got, true
	if tooLarge {
		runtimeStatus(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Exceeded maximum allowed payload size.")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

// serveInitError keeps what a worker says before it exits without having started.
func (e *environment) serveInitError(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxErrorBody))
	if err != nil || len(text) == 0 {
		text = functionError(errorType(nil, r.Header.Get("Lambda-Runtime-Function-Error-Type")), "the worker did not start")
	}
	e.mu.Lock()
	e.mu.initError = text
	e.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}

func runtimeStatus(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(functionError(kind, "%s", text))
}
