// Package blob puts s3:// behind io/fs, so that readers need not know where files
// lie, and writes objects that are either whole or absent.
//
// Credentials, region and endpoint come from where every AWS program takes them:
// AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_S3, the shared files, the instance's role.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// Scheme starts the URLs of this package.
const Scheme = "s3://"

// Is says whether url is one of this package's.
func Is(url string) bool { return strings.HasPrefix(url, Scheme) }

// Split cuts s3://bucket/key. The key may be empty, and never ends in a slash.
func Split(url string) (bucket, key string, err error) {
	rest, ok := strings.CutPrefix(url, Scheme)
	if !ok {
		return "", "", fmt.Errorf("open %q: it does not start with %s", url, Scheme)
	}
	bucket, key, _ = strings.Cut(rest, "/")
	if bucket == "" {
		return "", "", fmt.Errorf("open %q: it names no bucket; it must look like s3://bucket/key", url)
	}
	key = strings.Trim(key, "/")
	if key != "" && !fs.ValidPath(key) {
		return "", "", fmt.Errorf("open %q: %q cannot be a path: it has empty, . or .. parts", url, key)
	}
	return bucket, key, nil
}

// Options say how S3 is reached and read. The zero value takes everything from the
// environment.
type Options struct {
	// Endpoint is another server's address that speaks S3. "": AWS_ENDPOINT_URL_S3, or AWS.
	Endpoint string
	// Region is the bucket's. "": AWS_REGION or the profile's; us-east-1 where an endpoint is given.
	Region string
	// Profile is a section of the shared files. "": AWS_PROFILE.
	Profile string
	// Anonymous sends no credentials, for public buckets.
	Anonymous bool
	// PartSize is how many bytes one request reads or writes, 8 MiB by default. Writing
	// needs at least 5 MiB, S3's smallest part. Larger ones mean fewer requests and more memory.
	PartSize int
	// Ahead is how many parts are fetched before they are asked for, 3 by default; memory
	// per open file is (Ahead+2) parts.
	Ahead int
	// Attempts is how often a part is asked for before reading fails, 3 by default.
	Attempts int
}

func (o Options) withDefaults() Options {
	if o.PartSize <= 0 {
		o.PartSize = 8 << 20
	}
	if o.Ahead <= 0 {
		o.Ahead = 3
	}
	if o.Attempts <= 0 {
		o.Attempts = 3
	}
	return o
}

// client connects to S3; no request is made yet.
func client(ctx context.Context, o Options) (*s3.Client, error) {
	var load []func(*config.LoadOptions) error
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	// The SDK keeps 10 idle connections a host, fewer than files times Ahead.
	load = append(load, config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 64 })))
	if o.Anonymous {
		load = append(load, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("connect to S3: %w; check AWS_PROFILE and the shared files", err)
	}
	var region, endpoint string
	c := s3.NewFromConfig(cfg, func(s *s3.Options) {
		if o.Endpoint != "" {
			s.BaseEndpoint = aws.String(o.Endpoint)
		}
		if s.BaseEndpoint != nil {
			// Other servers have no host name for each bucket.
			s.UsePathStyle = true
			endpoint = *s.BaseEndpoint
			if s.Region == "" {
				s.Region = "us-east-1"
			}
		}
		region = s.Region
	})
	if region == "" && endpoint == "" {
		return nil, fmt.Errorf("connect to S3: no region is known; set AWS_REGION to the bucket's")
	}
	return c, nil
}

// pathError is err as io/fs has it, with the sentinel that callers ask for.
func pathError(op, bucket, key string, err error) error {
	url := Scheme + bucket
	if key != "" {
		url += "/" + key
	}
	var status interface{ HTTPStatusCode() int }
	var api smithy.APIError
	what := err
	if errors.As(err, &api) {
		what = fmt.Errorf("%s", strings.TrimSuffix(api.ErrorCode()+": "+api.ErrorMessage(), ": "))
	}
	if errors.As(err, &status) {
		switch status.HTTPStatusCode() {
		case http.StatusNotFound:
			what = fmt.Errorf("%w (%v)", fs.ErrNotExist, what)
		case http.StatusForbidden, http.StatusUnauthorized:
			what = fmt.Errorf("%w (%v)", fs.ErrPermission, what)
		case http.StatusPreconditionFailed:
			what = fmt.Errorf("%w (%v)", fs.ErrExist, what)
		case http.StatusMovedPermanently:
			what = fmt.Errorf("the bucket is in another region; set AWS_REGION to it (%v)", what)
		}
	}
	return &fs.PathError{Op: op, Path: url, Err: what}
}
