package kernels

import "fmt"

// ShapeError is a bug of the caller: an op was given operands that do not fit.
// Ops panic with it before any work is done.
type ShapeError struct {
	Op  string
	Msg string
}

// Error says which op was called and what does not fit.
func (e *ShapeError) Error() string { return fmt.Sprintf("kernels: %s: %s", e.Op, e.Msg) }

func shapeError(op, format string, args ...any) *ShapeError {
	return &ShapeError{Op: op, Msg: fmt.Sprintf(format, args...)}
}
