package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// spotEvery is how often EC2 advises to look; the notice comes two minutes ahead.
const spotEvery = 5 * time.Second

// spotClient asks the metadata service of this instance, or the one that
// AWS_EC2_METADATA_SERVICE_ENDPOINT names.
func (a *app) spotClient() *imds.Client {
	return imds.New(imds.Options{
		Endpoint: a.getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), Retryer: aws.NopRetryer{},
		HTTPClient: &http.Client{Timeout: 2 * time.Second},
	})
}

// getenv is the value of an environment variable, "" for none.
func (a *app) getenv(name string) string {
	value := ""
	for _, kv := range a.env {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			value = kv[len(name)+1:]
		}
	}
	return value
}

// heedSpot is ctx, which ends as by SIGTERM when EC2 gives notice that it takes this spot
// instance back. It is an error if there is no metadata service to ask.
func (a *app) heedSpot(ctx context.Context) (heeding context.Context, done func(), err error) {
	c := a.spotClient()
	if _, err := spotNotice(ctx, c); err != nil {
		return nil, nil, fmt.Errorf("--spot-notice: ask this machine's EC2 metadata: %w: leave the flag out where the machine is not an EC2 instance", err)
	}
	heeding, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(spotEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-heeding.Done():
				return
			}
			// A service that does not answer once will be asked again.
			if what, err := spotNotice(heeding, c); err == nil && what != "" {
				a.note(false, "EC2 will %s this spot instance: stopping.", what)
				cancel(stopped{syscall.SIGTERM})
				return
			}
		}
	})
	return heeding, func() { cancel(nil); wg.Wait() }, nil
}

// spotNotice is what EC2 is about to do with this instance ("terminate", "stop",
// "hibernate"), "" for nothing.
func spotNotice(ctx context.Context, c *imds.Client) (string, error) {
	out, err := c.GetMetadata(ctx, &imds.GetMetadataInput{Path: "spot/instance-action"})
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer out.Content.Close()
	data, err := io.ReadAll(io.LimitReader(out.Content, 1<<16))
	if err != nil {
		return "", err
	}
	var notice struct {
		Action string `json:"action"`
	}
	if err := json.Unmarshal(data, &notice); err != nil {
		return "", fmt.Errorf("read its notice %q: %w", data, err)
	}
	return notice.Action, nil
}
