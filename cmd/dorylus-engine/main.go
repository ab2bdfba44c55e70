// Dorylus-engine trains graph neural networks on whole graphs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitTryAgain    = 75 // stopped from outside, a checkpoint was written
	exitInterrupted = 130
)

func main() {
	ctx, stop := signalContext(context.Background())
	code := run(ctx, os.Args[1:], newApp(os.Stdout, os.Stderr, os.Environ()))
	stop()
	os.Exit(code)
}

// stopped is why a context ended: the signal that came.
type stopped struct{ os.Signal }

func (s stopped) Error() string {
	if s.Signal == os.Interrupt {
		return "interrupted"
	}
	return "told to stop (" + s.Signal.String() + ")"
}

// signalContext ends with the first SIGINT or SIGTERM, the signal being its cause.
// The second one finds the default in place and kills the process.
func signalContext(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(stopped{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}
