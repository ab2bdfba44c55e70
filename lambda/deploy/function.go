package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// function makes the function, or brings it up to date, and waits until it can be
// invoked.
func (a *Account) function(ctx context.Context, p *Plan, res *Result, freshRole bool) (arn string, created bool, err error) {
	old, err := a.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &p.Function.Name})
	var missing *types.ResourceNotFoundException
	switch {
	case err == nil:
		err = a.update(ctx, p, res, old)
	case errors.As(err, &missing):
		created = true
		err = a.create(ctx, p, res, freshRole)
	}
	if err != nil {
		return "", created, err
	}
	if arn, err = a.ready(ctx, p.Function.Name); err != nil {
		return "", created, err
	}
	if p.Function.Reserved > 0 {
		if _, err := a.lambda.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{
			FunctionName: &p.Function.Name, ReservedConcurrentExecutions: aws.Int32(int32(p.Function.Reserved)),
		}); err != nil {
			return "", created, err
		}
		a.Report(fmt.Sprintf("function %s: %d concurrent invocations reserved", p.Function.Name, p.Function.Reserved))
	}
	return arn, created, nil
}

func (a *Account) create(ctx context.Context, p *Plan, res *Result, freshRole bool) error {
	f := &p.Function
	in := &lambda.CreateFunctionInput{
		FunctionName: &f.Name, Description: aws.String(policyOwner), Role: &res.Role, PackageType: types.PackageTypeZip,
		Runtime: types.Runtime(f.Runtime), Handler: &f.Handler, Architectures: []types.Architecture{types.Architecture(f.Arch)},
		MemorySize: aws.Int32(int32(f.MemoryMB)), Timeout: aws.Int32(int32(f.TimeoutS)), Code: &types.FunctionCode{ZipFile: p.bundle.Zip},
		Environment: &types.Environment{Variables: f.Env},
	}
	if p.Network != nil {
		in.VpcConfig = &types.VpcConfig{SubnetIds: p.Network.Subnets, SecurityGroupIds: p.Network.SecurityGroups}
	}
	err := a.again(ctx, "let Lambda take on the new role", func() (bool, error) {
		_, err := a.lambda.CreateFunction(ctx, in)
		var invalid *types.InvalidParameterValueException
		if freshRole && errors.As(err, &invalid) && strings.Contains(strings.ToLower(invalid.ErrorMessage()), "role") {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return err
	}
	a.Report("function " + f.Name + ": made")
	return nil
}

// same says that a function's configuration is what the plan wants, its code apart.
func same(c *lambda.GetFunctionConfigurationOutput, p *Plan, res *Result) bool {
	var env map[string]string
	if c.Environment != nil {
		env = c.Environment.Variables
	}
	var has, want types.VpcConfig
	if c.VpcConfig != nil {
		has.SubnetIds, has.SecurityGroupIds = c.VpcConfig.SubnetIds, c.VpcConfig.SecurityGroupIds
	}
	if p.Network != nil {
		want.SubnetIds, want.SecurityGroupIds = p.Network.Subnets, p.Network.SecurityGroups
	}
	f := &p.Function
	return aws.ToString(c.Role) == res.Role && aws.ToString(c.Handler) == f.Handler && string(c.Runtime) == f.Runtime &&
		aws.ToInt32(c.MemorySize) == int32(f.MemoryMB) && aws.ToInt32(c.Timeout) == int32(f.TimeoutS) && maps.Equal(env, f.Env) &&
		sameSet(has.SubnetIds, want.SubnetIds) && sameSet(has.SecurityGroupIds, want.SecurityGroupIds)
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func (a *Account) update(ctx context.Context, p *Plan, res *Result, old *lambda.GetFunctionConfigurationOutput) error {
	f := &p.Function
	if old.PackageType == types.PackageTypeImage {
		return fmt.Errorf("function %s runs an image, and a program cannot take its place: delete it, or deploy under another name", f.Name)
	}
	if _, err := a.ready(ctx, f.Name); err != nil { // of somebody else's update
		return err
	}
	if arch := types.Architecture(f.Arch); aws.ToString(old.CodeSha256) == p.bundle.SHA256 && slices.Equal(old.Architectures, []types.Architecture{arch}) {
		a.Report("function " + f.Name + ": its code is the same")
	} else {
		if _, err := a.lambda.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{FunctionName: &f.Name, ZipFile: p.bundle.Zip, Architectures: []types.Architecture{arch}}); err != nil {
			return err
		}
		if _, err := a.ready(ctx, f.Name); err != nil {
			return err
		}
		a.Report("function " + f.Name + ": new code")
	}
	if same(old, p, res) {
		a.Report("function " + f.Name + ": its configuration is the same")
		return nil
	}
	in := &lambda.UpdateFunctionConfigurationInput{
		FunctionName: &f.Name, Role: &res.Role, Runtime: types.Runtime(f.Runtime), Handler: &f.Handler,
		MemorySize: aws.Int32(int32(f.MemoryMB)), Timeout: aws.Int32(int32(f.TimeoutS)), Environment: &types.Environment{Variables: map[string]string{}},
		VpcConfig: &types.VpcConfig{SubnetIds: []string{}, SecurityGroupIds: []string{}}, // none detaches it
	}
	if len(f.Env) > 0 {
		in.Environment.Variables = f.Env
	}
	if p.Network != nil {
		in.VpcConfig = &types.VpcConfig{SubnetIds: p.Network.Subnets, SecurityGroupIds: p.Network.SecurityGroups}
	}
	if _, err := a.lambda.UpdateFunctionConfiguration(ctx, in); err != nil {
		return err
	}
	a.Report("function " + f.Name + ": new configuration")
	return nil
}

// ready waits until a function can be invoked and changed, and returns its ARN.
func (a *Account) ready(ctx context.Context, name string) (arn string, err error) {
	err = a.again(ctx, "wait for function "+name, func() (bool, error) {
		c, err := a.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
		if err != nil {
			return false, err
		}
		arn = aws.ToString(c.FunctionArn)
		switch {
		case c.State == types.StateFailed:
			return false, fmt.Errorf("function %s cannot be used: %s (%s)", name, aws.ToString(c.StateReason), c.StateReasonCode)
		case c.LastUpdateStatus == types.LastUpdateStatusFailed:
			return false, fmt.Errorf("function %s could not be updated: %s (%s)", name, aws.ToString(c.LastUpdateStatusReason), c.LastUpdateStatusReasonCode)
		}
		// One that nobody has invoked for long is inactive, and gets up when invoked.
		up := c.State == types.StateActive || c.State == types.StateInactive || c.State == ""
		return up && c.LastUpdateStatus != types.LastUpdateStatusInProgress, nil
	})
	return arn, err
}
