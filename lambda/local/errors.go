package local

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// apiError is a refusal: the call did not run, or its outcome is not known.
type apiError struct {
	status     int
	kind       string // the SDK's type, without "types."
	text       string
	reason     string // of a throttled request
	retryAfter time.Duration
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d): %s", e.kind, e.status, e.text) }

// body is the error's JSON. The message's name is spelled as each type of the
// service's model spells it: Message in some, message in others.
func (e *apiError) body() []byte {
	message, blame := "message", "User"
	switch e.kind {
	case "ResourceNotFoundException":
		message = "Message"
	case "ServiceException":
		message, blame = "Message", "Service"
	}
	m := map[string]string{"Type": blame, message: e.text}
	if e.reason != "" {
		m["Reason"] = e.reason
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

func (e *apiError) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Amzn-Errortype", e.kind)
	if e.retryAfter > 0 {
		seconds := (e.retryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	b := e.body()
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(e.status)
	_, _ = w.Write(b) // the caller may have left
}

func errNotFound(arn string) *apiError {
	return &apiError{status: http.StatusNotFound, kind: "ResourceNotFoundException", text: "Function not found: " + arn}
}

func errTooLarge(limit int) *apiError {
	return &apiError{status: http.StatusRequestEntityTooLarge, kind: "RequestTooLargeException",
		text: fmt.Sprintf("Request must be smaller than %d bytes for the InvokeFunction operation", limit)}
}

func errContent(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "InvalidRequestContentException", text: fmt.Sprintf(format, args...)}
}

func errParameter(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "InvalidParameterValueException", text: fmt.Sprintf(format, args...)}
}

// The reasons of a throttled request; those of the SDK's type ThrottleReason.
const (
	overConcurrency = "ConcurrentInvocationLimitExceeded"
	overReserved    = "ReservedFunctionConcurrentInvocationLimitExceeded"
	overRate        = "FunctionInvocationRateLimitExceeded"
)

func errThrottled(reason string, wait time.Duration) *apiError {
	return &apiError{status: http.StatusTooManyRequests, kind: "TooManyRequestsException", text: "Rate Exceeded.", reason: reason, retryAfter: wait}
}

func errService(format string, args ...any) *apiError {
	return &apiError{status: http.StatusInternalServerError, kind: "ServiceException", text: fmt.Sprintf(format, args...)}
}

var errClosing = errService("the local Lambda service is closing")

// functionError is the payload of a call that ran and failed.
func functionError(kind, format string, args ...any) []byte {
	b, err := json.Marshal(struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}{kind, fmt.Sprintf(format, args...)})
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

// errorType reads the type out of a function's own error payload.
func errorType(payload []byte, header string) string {
	var e struct {
		Type string `json:"errorType"`
	}
	if json.Unmarshal(payload, &e) == nil && e.Type != "" {
		return e.Type
	}
	if header = strings.TrimSpace(header); header != "" {
		return header
	}
	return "Unhandled"
}

// checkSignature holds an Authorization header to the shape of Signature
// Version 4. The signature itself is not verified: there is no secret to verify.
func checkSignature(header string) *apiError {
	if header == "" {
		return &apiError{status: http.StatusForbidden, kind: "MissingAuthenticationTokenException", text: "Missing Authentication Token"}
	}
	bad := func(text string) *apiError {
		return &apiError{status: http.StatusForbidden, kind: "IncompleteSignatureException", text: text}
	}
	rest, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	if !ok {
		return bad("Authorization header requires the algorithm AWS4-HMAC-SHA256")
	}
	parts := make(map[string]string)
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	for _, name := range []string{"Credential", "SignedHeaders", "Signature"} {
		if parts[name] == "" {
			return bad(fmt.Sprintf("Authorization header requires '%s' parameter.", name))
		}
	}
	if scope := strings.Split(parts["Credential"], "/"); len(scope) != 5 || scope[3] != "lambda" || scope[4] != "aws4_request" {
		return bad(fmt.Sprintf("Credential %q must be KEY/DATE/REGION/lambda/aws4_request", parts["Credential"]))
	}
	return nil
}
