package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dorylus/lambda/deploy"
)

const (
	deployTime    = 15 * time.Minute // attaching a function to a VPC takes minutes
	findTime      = 20 * time.Second // for AWS settings and credentials
	assumedRegion = "us-east-1"      // of a dry run without settings
)

// deployFlags are what `lambda deploy` is told.
type deployFlags struct {
	spec   deploy.Spec
	env    []string
	dry    bool
	output string
}

func (a *app) lambdaDeployCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use:   "deploy",
		Short: "Put the worker on AWS Lambda: its function and its role",
		Long: `Deploy makes the worker's function on AWS Lambda and the role that it runs under, or brings them up to
date: the program is zipped as bootstrap for provided.al2023, and the command waits until the function can
be invoked. It may be run again at any time. With --dry-run it prints what it would make, with all policies,
and needs no account.

Rights are as narrow as they can be. The worker's role may write its own log; in a VPC, Lambda may attach
the function by it, and the worker's code may not use that. Graph servers need lambda:InvokeFunction on
this one function: the command prints that policy, and you attach it to their role. Whoever deploys needs
the policy that --dry-run prints last.

Workers call their graph server, so they need a way to it. Inside a VPC name the workers' --subnets, the graph
servers' --graph-security-group, and the --port on which they listen: the command makes a security group for
the workers that lets them go there and nowhere else, and prints the rule that lets them in, which you set. With
--security-groups workers get those instead; they are not changed, and both rules are printed.`,
		Example: `  dorylus-engine lambda deploy --dry-run
  dorylus-engine lambda deploy --subnets=subnet-0a,subnet-0b --graph-security-group=sg-02 --port=7100
  dorylus-engine lambda deploy --subnets=subnet-0a,subnet-0b --security-groups=sg-01 --reserved-concurrency=200`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.deploy(cmd.Context(), &f) },
	}
	s := &f.spec
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.dry, "dry-run", false, "print what would be made, and make nothing")
	flags.StringVarP(&f.output, "output", "o", "text", "text, or json: one object on standard output")
	flags.StringVar(&s.Worker, "worker", "", "the worker's program (default: "+workerName+" beside this one)")
	flags.StringVar(&s.Function, "function", workerName, "name of the function")
	flags.StringVar(&s.Arch, "arch", deploy.Architectures[0], "processor: x86_64, or arm64 with a worker built for it")
	flags.IntVar(&s.MemoryMB, "memory", 1769, "memory in MB, 128 to 10240; 1769 is one processor")
	flags.DurationVar(&s.Timeout, "timeout", 15*time.Minute, "longest invocation, up to 15m")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE for the worker, any number of times")
	flags.StringVar(&s.Region, "region", "", "AWS region (default: that of your AWS settings)")
	flags.StringVar(&s.Role, "role", "", "ARN of a role to use as it is, instead of making one")
	flags.StringSliceVar(&s.Subnets, "subnets", nil, "ids of the subnets in which workers are attached (default: outside any VPC)")
	flags.StringSliceVar(&s.SecurityGroups, "security-groups", nil, "ids of the workers' security groups (default: one is made, which lets them reach graph servers only)")
	flags.StringVar(&s.GraphGroup, "graph-security-group", "", "id of the graph servers' security group, which is not changed")
	flags.IntVar(&s.Port, "port", 0, "port on which graph servers listen for workers")
	flags.IntVar(&s.Reserved, "reserved-concurrency", 0, "invocations reserved for the function, which is its limit too; 0 leaves that as it is")
	return cmd
}

func (a *app) deploy(ctx context.Context, f *deployFlags) error {
	s := &f.spec
	if f.output != "text" && f.output != "json" {
		return usagef("--output=%s: choose text or json", f.output)
	}
	var err error
	if s.Env, err = variables(f.env); err != nil {
		return err
	}
	found, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	settings, err := deploy.Configure(found, s.Region)
	if err != nil && !f.dry {
		return err
	}
	if s.Region = settings.Region; s.Region == "" && f.dry {
		s.Region = assumedRegion
		a.note(f.output == "json", "No region is set: this is the plan for %s.", s.Region)
	}
	if s.Worker == "" {
		command, err := workerCommand("")
		if err != nil {
			return err
		}
		s.Worker = command[0]
	} else if s.Worker, err = filepath.Abs(s.Worker); err != nil {
		return fmt.Errorf("find the worker %s: %w", s.Worker, err)
	}
	if err := s.Validate(); err != nil {
		return usage(err)
	}
	plan, err := deploy.New(*s)
	if err != nil {
		return err
	}
	if f.dry {
		return a.showPlan(plan, f.output)
	}
	account, err := deploy.Open(found, settings)
	if err != nil {
		return err
	}
	account.Report = func(step string) { a.note(f.output == "json", "%s", step) }
	ctx, cancelAll := context.WithTimeout(ctx, deployTime)
	defer cancelAll()
	res, err := account.Apply(ctx, plan)
	if err != nil {
		return err
	}
	return a.showDeployed(res, s.Region, f.output)
}

func (a *app) showPlan(p *deploy.Plan, output string) error {
	if output == "json" {
		return a.printJSON(p)
	}
	if err := p.Write(a.out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.out, "\nNothing was made: this was a dry run.")
	return err
}

func (a *app) showDeployed(r *deploy.Result, region, output string) error {
	if output == "json" {
		return a.printJSON(r)
	}
	policy, err := json.MarshalIndent(r.Driver, "", "  ")
	if err != nil {
		return err
	}
	what := "brought up to date"
	if r.Created {
		what = "made"
	}
	_, err = fmt.Fprintf(a.out, "%s was %s and can be invoked.\nIt runs under %s.\nThe role of the graph servers needs this policy:\n%s\n", r.Function, what, r.Role, policy)
	if err != nil || r.Network == nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "Workers are in %s. Security groups that were not made here have to let them through:\n", strings.Join(r.Network.SecurityGroups, ", "))
	for _, rule := range r.Network.Rules {
		if err == nil {
			_, err = fmt.Fprintln(a.out, cmp.Or(rule.Command(region), fmt.Sprintf("%s: %s %s %s, at the port for workers", rule.Group, rule.Protocol, rule.Direction, rule.Peer)))
		}
	}
	return err
}

// printJSON prints one indented object.
func (a *app) printJSON(x any) error {
	data, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", data)
	return err
}
