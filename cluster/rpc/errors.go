package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Refuse is what a handler returns to a caller that should not try again: a wrong job,
// sizes or ids that do not fit.
func Refuse(format string, args ...any) error {
	return status.Errorf(codes.FailedPrecondition, format, args...)
}

func denied(format string, args ...any) error {
	return status.Errorf(codes.PermissionDenied, format, args...)
}

// toStatus is a handler's error as the caller sees it.
func toStatus(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.FailedPrecondition, err.Error())
}

// Passing says whether an error of a call or stream may be gone when it is tried again:
// the connection broke or could not be made. It is false for what the peer has refused.
func Passing(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Aborted:
		return true
	}
	return false
}

// Text is what an error says, without gRPC's words around it.
func Text(err error) string {
	if err == nil {
		return ""
	}
	if s, ok := status.FromError(err); ok && s.Message() != "" {
		return s.Message()
	}
	return err.Error()
}

// Plain is err with the words of Text.
func Plain(err error) error { return plain{err} }

type plain struct{ error }

// Error implements error.
func (p plain) Error() string { return Text(p.error) }

// Unwrap is the error as it was.
func (p plain) Unwrap() error { return p.error }

// PeerError is the loss of a peer, or its misbehaviour, as the run's error. A run that
// ends with one may go on from a checkpoint.
type PeerError struct {
	Who     Who
	Addr    string
	Awaited string // what was awaited of it, such as "rows of step 3 of interval 7, epoch 2"
	Err     error
}

// Error implements error.
func (e *PeerError) Error() string {
	s := fmt.Sprintf("%v at %s: %s", e.Who, e.Addr, Text(e.Err))
	if e.Awaited != "" {
		s += fmt.Sprintf(" (awaited: %s)", e.Awaited)
	}
	return s
}

// Unwrap is the cause.
func (e *PeerError) Unwrap() error { return e.Err }
