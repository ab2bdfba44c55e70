// Package invoke calls Lambda workers through the AWS SDK: the same way whether AWS or
// the local service answers.
package invoke

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"dorylus/engine"
	"dorylus/lambda/worker"
)

// Options configure a Launcher.
type Options struct {
	// Endpoint is the URL of a service other than AWS, "" for AWS itself. Such a service
	// gets credentials that mean nothing.
	Endpoint string
	// Region is AWS's; "": that of the user's own configuration.
	Region string
	// Function is the name or ARN of the worker's function.
	Function string
	// Addresses and Certificate are where workers find the graph server.
	Addresses   []string
	Certificate string
	// Used hears of every invocation that has ended, as it is billed; nil: nobody. It
	// may be called from several goroutines.
	Used func(engine.LambdaUsed)
	// MemoryMB is the size of the function, for Held; 0: what the last bill said.
	MemoryMB int
	// Arch is what the function runs on: "x86_64" (default), "arm64".
	Arch string
	// Modelled says that the service bills nobody.
	Modelled bool
}

// Launcher implements fleet.Launcher.
type Launcher struct {
	opt     Options
	client  *lambda.Client
	refused atomic.Int64

	mu    sync.Mutex
	calls map[*time.Time]bool // that are under way, by their starts
	size  int                 // MB
}

// Held is what the calls under way have used so far.
func (l *Launcher) Held() engine.LambdaHeld {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := engine.LambdaHeld{MBms: map[string]int64{}, Invocations: int64(len(l.calls))}
	for start := range l.calls {
		h.MBms[l.opt.Arch] += int64(l.size) * time.Since(*start).Milliseconds()
	}
	return h
}

// invoke calls the function once, and bills it.
func (l *Launcher) invoke(ctx context.Context, payload []byte) (*lambda.InvokeOutput, error) {
	start := time.Now()
	l.mu.Lock()
	l.calls[&start] = true
	l.mu.Unlock()
	out, err := l.call(ctx, &lambda.InvokeInput{FunctionName: &l.opt.Function, Payload: payload, LogType: types.LogTypeTail})
	l.mu.Lock()
	delete(l.calls, &start)
	l.mu.Unlock()
	if err != nil {
		return nil, l.failed(err)
	}
	l.bill(aws.ToString(out.LogResult))
	if aws.ToString(out.FunctionError) != "" {
		return nil, fmt.Errorf("invoke %s: %w", l.opt.Function, functionError(out.Payload))
	}
	return out, nil
}

// call asks the service, with credentials if there are any.
func (l *Launcher) call(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
	// The SDK's error does not tell a lack of them from others. It keeps those it has.
	if _, err := l.client.Options().Credentials.Retrieve(ctx); err != nil && ctx.Err() == nil {
		return nil, errCredentials{fmt.Errorf("get the AWS credentials: %w", err)}
	}
	return l.client.Invoke(ctx, in)
}

// Refused counts the calls that the service has refused for too many requests.
func (l *Launcher) Refused() int64 { return l.refused.Load() }

// idleConns is how many connections between two invocations are kept: as many as
// AWS lets an account's workers run at once unless it has been asked for more.
const idleConns = 1000

// New is a Launcher. It does not call the service.
func New(ctx context.Context, o Options) (*Launcher, error) {
	if o.Arch == "" {
		o.Arch = "x86_64"
	}
	// An invocation lasts as long as its worker is wanted: no limit, a connection each,
	// and alive for the sake of routers that forget idle ones.
	client := awshttp.NewBuildableClient().WithDialerOptions(func(d *net.Dialer) {
		d.Timeout, d.KeepAlive = 10*time.Second, 30*time.Second
	}).WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, idleConns // a task's invocation follows another
	})
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }), // the fleet calls again, knowingly
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.Endpoint != "" {
		load = append(load, config.WithBaseEndpoint(o.Endpoint), config.WithDefaultRegion("us-east-1"),
			config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("local", "local", "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("prepare calls of Lambda: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("prepare calls of Lambda: no region is set: set AWS_REGION, or a region in the AWS configuration")
	}
	return &Launcher{opt: o, client: lambda.NewFromConfig(cfg), calls: map[*time.Time]bool{}, size: o.MemoryMB}, nil
}

// Launch invokes one worker and returns when its invocation has ended: nil if it left
// in good order.
func (l *Launcher) Launch(ctx context.Context, in worker.Invitation) error {
	in.Addresses, in.Certificate = l.opt.Addresses, l.opt.Certificate
	payload, err := json.Marshal(in)
	if err != nil {
		return err
	}
	_, err = l.invoke(ctx, payload)
	return err
}

// failed is an error of a call, explained and counted.
func (l *Launcher) failed(err error) error {
	var busy *types.TooManyRequestsException
	if errors.As(err, &busy) {
		l.refused.Add(1)
	}
	return fmt.Errorf("invoke %s: %w", l.opt.Function, explained(err))
}

// bill reads the REPORT line at the end of an invocation's log.
func (l *Launcher) bill(log string) {
	text, err := base64.StdEncoding.DecodeString(log)
	if err != nil || l.opt.Used == nil {
		return
	}
	if used, ok := parseReport(string(text)); ok {
		used.Arch, used.Modelled = l.opt.Arch, l.opt.Modelled
		l.mu.Lock()
		l.size = used.MemoryMB
		l.mu.Unlock()
		l.opt.Used(used)
	}
}
