package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Serve runs a service until ctx ends and then writes what it billed: the body of
// the command "lambda serve". Events of refused and failed calls go to out too.
func Serve(ctx context.Context, o Options, out io.Writer) error {
	next := o.OnEvent
	o.OnEvent = func(e Event) {
		switch e.Kind {
		case ColdStart, Rejected, Fault, Retry, Dropped, Ended:
			fmt.Fprintf(out, "%-10s %s %s %s %s\n", e.Kind, e.Function, e.RequestID, e.ErrorType, e.Text)
		}
		if next != nil {
			next(e)
		}
	}
	s, err := Start(ctx, o)
	if err != nil {
		return err
	}
	var b []byte
	b = fmt.Appendf(b, "local Lambda service at %s\n", s.Endpoint())
	for _, name := range slices.Sorted(maps.Keys(s.opt.Functions)) {
		f := s.opt.Functions[name]
		b = fmt.Appendf(b, "  function %s: %s, %d MB, timeout %v\n", name, f.Command[0], f.MemoryMB, f.Timeout)
	}
	b = fmt.Appendf(b, "use it:  AWS_ENDPOINT_URL_LAMBDA=%s AWS_REGION=%s AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local\n", s.Endpoint(), s.opt.Region)
	_, err = out.Write(b)
	if err == nil {
		<-ctx.Done()
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	err = errors.Join(err, s.Close(patience))
	t := s.Ledger().Total()
	_, printErr := fmt.Fprintf(out, "%d calls, %d failed, %d throttled, %d cold starts; %d ms billed, %.3f GB-seconds (modelled)\n",
		t.Requests, t.Failed, t.Throttled, t.ColdStarts, t.BilledMS, t.GBSeconds())
	return errors.Join(err, printErr)
}
