package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go/logging"
)

// Account carries plans out.
type Account struct {
	lambda *lambda.Client
	iam    *iam.Client
	ec2    *ec2.Client
	// pause is how long to wait before an answer that is due is asked for again;
	// patience bounds all pauses for one answer.
	pause, patience time.Duration
	// Report hears of each step, in words.
	Report func(step string)
}

// Result is what has been deployed.
type Result struct {
	Function string `json:"function_arn"`
	Role     string `json:"role_arn"`
	// Created says that there was no such function before.
	Created bool `json:"created"`
	// Driver is the policy that graph servers need.
	Driver Policy `json:"graph_server_policy"`
	// Network is how the function is attached, with the rules that are left to set; nil:
	// outside any VPC.
	Network *NetworkPlan `json:"network,omitempty"`
}

// Configure finds region and credentials as all AWS tools do; region overrules theirs.
// A region that is nowhere to be found is "" in the answer.
func Configure(ctx context.Context, region string) (aws.Config, error) {
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})} // what it warns of is in its errors
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return cfg, fmt.Errorf("read the AWS settings: %w", err)
	}
	return cfg, nil
}

// Open is the account of the settings. It fails where they hold no credentials.
func Open(ctx context.Context, cfg aws.Config) (*Account, error) {
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("deploy the worker: find AWS credentials: %w; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; --dry-run needs none", err)
	}
	return &Account{
		lambda: lambda.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg), ec2: ec2.NewFromConfig(cfg),
		pause: 2 * time.Second, patience: 5 * time.Minute, Report: func(string) {},
	}, nil
}

// Apply carries a plan out: what is missing is made, what differs is changed. It may be
// run again after an error.
func (a *Account) Apply(ctx context.Context, p *Plan) (*Result, error) {
	res, err := a.apply(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("deploy the worker: %w", explain(err))
	}
	return res, nil
}

func (a *Account) apply(ctx context.Context, p *Plan) (*Result, error) {
	res := &Result{Role: p.Role.Given}
	fresh := false
	if p.Role.Name != "" {
		var err error
		if res.Role, fresh, err = a.role(ctx, p); err != nil {
			return nil, err
		}
	}
	parts := strings.SplitN(res.Role, ":", 6) // arn:aws:iam::123456789012:role/name
	if len(parts) != 6 {
		return nil, fmt.Errorf("AWS has answered with %q as the ARN of a role", res.Role)
	}
	p.locate(names{parts[1], p.Region, parts[4]})
	if p.Role.Name != "" {
		if err := a.rights(ctx, p); err != nil {
			return nil, err
		}
	}
	if p.Network != nil && p.Network.Group != nil {
		id, err := a.group(ctx, p)
		if err != nil {
			return nil, err
		}
		p.Network.made(id)
	}
	var err error
	if res.Function, res.Created, err = a.function(ctx, p, res, fresh); err != nil {
		return nil, err
	}
	res.Driver, res.Network = p.Driver, p.Network
	return res, nil
}

// role is the ARN of the worker's role, which is made where there is none. A fresh one is
// not known everywhere yet.
func (a *Account) role(ctx context.Context, p *Plan) (arn string, fresh bool, err error) {
	got, err := a.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &p.Role.Name})
	if err == nil {
		return aws.ToString(got.Role.Arn), time.Since(aws.ToTime(got.Role.CreateDate)) < time.Minute, nil
	}
	if !is(err, "NoSuchEntity") {
		return "", false, err
	}
	doc, err := json.Marshal(p.Role.Trust)
	if err != nil {
		return "", false, err
	}
	made, err := a.iam.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: &p.Role.Name, AssumeRolePolicyDocument: aws.String(string(doc)), Description: aws.String(policyOwner),
	})
	if err != nil {
		return "", false, err
	}
	a.Report("role " + p.Role.Name + ": made")
	return aws.ToString(made.Role.Arn), true, nil
}

// rights gives the role its policy, in place of the one it has.
func (a *Account) rights(ctx context.Context, p *Plan) error {
	doc, err := json.Marshal(p.Role.Policy)
	if err != nil {
		return err
	}
	if _, err := a.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: &p.Role.Name, PolicyName: aws.String(policyName), PolicyDocument: aws.String(string(doc)),
	}); err != nil {
		return err
	}
	a.Report("role " + p.Role.Name + ": policy " + policyName + " set")
	return nil
}

// again does f until it says that it is done, with pauses that grow.
func (a *Account) again(ctx context.Context, what string, f func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, a.patience, fmt.Errorf("%s: it has not come about in %v", what, a.patience))
	defer cancel()
	for pause := a.pause; ; pause = min(2*pause, 10*a.pause) {
		done, err := f()
		if done || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
