package invoke

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"dorylus/lambda/fleet"
)

// errCredentials is an error of a call for which there were no credentials.
type errCredentials struct{ error }

func (e errCredentials) Unwrap() error { return e.error }

// refusals are the codes of AWS's answers to credentials that it does not accept, or that
// may not invoke the function.
var refusals = map[string]bool{
	"AccessDeniedException": true, "UnrecognizedClientException": true, "InvalidSignatureException": true,
	"ExpiredTokenException": true, "MissingAuthenticationTokenException": true, "IncompleteSignatureException": true,
}

// explained adds what to do to errors that a user can do something about.
func explained(err error) error {
	var missing *types.ResourceNotFoundException
	var busy *types.TooManyRequestsException
	var large *types.RequestTooLargeException
	var none errCredentials
	var api smithy.APIError
	switch {
	case errors.As(err, &none), errors.As(err, &api) && refusals[api.ErrorCode()]:
		return fmt.Errorf("%w; check the AWS credentials: they must be valid and allow lambda:InvokeFunction: %w", err, fleet.ErrNever)
	case errors.As(err, &missing):
		return fmt.Errorf("%w; create it with 'dorylus-engine lambda deploy': %w", err, fleet.ErrNever)
	case errors.As(err, &busy):
		return fmt.Errorf("throttled (%s): %w", busy.Reason, err)
	case errors.As(err, &large):
		return fmt.Errorf("the payload is over Lambda's limit: %w: %w: %s", err, fleet.ErrTooLarge, smaller)
	}
	return err
}

// functionError is what has become of an invocation that has ended in an error, by its
// answer.
func functionError(answer []byte) error {
	var e struct{ ErrorType string }
	if json.Unmarshal(answer, &e) == nil && e.ErrorType == "Function.ResponseSizeTooLarge" {
		return fmt.Errorf("the worker's results are over Lambda's limit: %s: %w: %s", answer, fleet.ErrTooLarge, smaller)
	}
	return fmt.Errorf("the worker failed: %s", answer)
}
