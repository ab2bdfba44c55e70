package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
)

// is says that a service has answered with an error of this code.
func is(err error, code string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == code
}

// rejected are the codes of credentials that AWS does not accept.
var rejected = map[string]bool{
	"ExpiredToken": true, "ExpiredTokenException": true, "InvalidClientTokenId": true, "UnrecognizedClientException": true,
	"InvalidSignatureException": true, "SignatureDoesNotMatch": true, "AuthFailure": true, "InvalidAccessKeyId": true,
}

// explain adds what to do to an error of the SDK.
func explain(err error) error {
	var op *smithy.OperationError
	if !errors.As(err, &op) {
		return err
	}
	right := strings.ToLower(op.Service()) + ":" + op.Operation()
	var api smithy.APIError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case !errors.As(err, &api):
		return fmt.Errorf("%w; AWS must be reachable: is there a way to the internet, or to an endpoint of the service?", err)
	case rejected[api.ErrorCode()]:
		return fmt.Errorf("%w; AWS does not accept these credentials: renew them, or choose others by AWS_PROFILE", err)
	case strings.HasPrefix(api.ErrorCode(), "AccessDenied") || api.ErrorCode() == "UnauthorizedOperation":
		return fmt.Errorf("%w; these credentials lack %s: --dry-run prints the policy that whoever deploys needs", err, right)
	case api.ErrorCode() == "CodeStorageExceededException":
		return fmt.Errorf("%w; delete old versions of functions in this region", err)
	}
	return err
}
