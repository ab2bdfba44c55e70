package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dorylus/lambda/local"
)

// workerName is the worker's program, which lies beside this one.
const workerName = "dorylus-lambda"

func (a *app) lambdaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lambda",
		Short: "Lambda workers: serve them on this machine, deploy them on AWS",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.lambdaServeCommand(), a.lambdaDeployCommand())
	return cmd
}

func (a *app) lambdaServeCommand() *cobra.Command {
	var worker, name, chaos string
	var env []string
	var bandwidth bytesFlag
	f := local.Function{MemoryMB: local.MBPerCPU, Timeout: 15 * time.Minute}
	o := local.Options{Listen: "127.0.0.1:9001", Concurrency: 1000, ScaleUp: 1000, IdleReap: 5 * time.Minute, Log: a.out}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the Lambda API on this machine, with real worker processes",
		Long: `Serve is a Lambda service on a loopback port: its API for the AWS SDK and command line, and a process
per environment behind it, with Lambda's limits, errors, cold starts, freezing and billing. It prints what
workers log, and at its end (Ctrl-C) what it would have billed. Training with --mode=lambda starts such a
service by itself.

--chaos injects faults by seed, each with a probability: crash, hang, slow-start, throttle, lose-reply,
late-reply, duplicate-reply, server-error; delay is how late a slow start or reply is, window how soon a
crash or hang strikes, latency (in --mode=lambda) how much later the server hears its workers. Example: --chaos seed=7,crash=0.1,late-reply=0.05,delay=1s`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.Command, err = workerCommand(worker); err != nil {
				return err
			}
			if o.Chaos, err = local.ParseChaos(chaos); err != nil {
				return usage(fmt.Errorf("--%w", err))
			}
			if f.Env, err = variables(env); err != nil {
				return err
			}
			o.BandwidthBytesPerSec = int64(bandwidth)
			o.Functions = map[string]local.Function{name: f}
			if err := o.Validate(); err != nil {
				return usage(err)
			}
			return local.Serve(cmd.Context(), o, a.out)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&worker, "worker", "", "the worker's program (default: "+workerName+" beside this one)")
	flags.StringVar(&name, "function", workerName, "name of the function")
	flags.IntVar(&f.MemoryMB, "memory", f.MemoryMB, "memory of the function in MB, 128 to 10240; 1769 is one processor")
	flags.DurationVar(&f.Timeout, "timeout", f.Timeout, "longest call, up to 15m")
	flags.StringArrayVar(&env, "env", nil, "NAME=VALUE for the worker, any number of times; it sees nothing of this environment")
	flags.StringVar(&o.Listen, "listen", o.Listen, "loopback address; port 0 takes a free one")
	flags.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "calls at the same time")
	flags.IntVar(&o.ScaleUp, "scale-up", o.ScaleUp, "environments that a function may add in 10 s")
	flags.DurationVar(&o.IdleReap, "idle", o.IdleReap, "how long an environment lives without a call")
	flags.DurationVar(&o.ColdStartDelay, "cold-start", 0, "delay before a new environment's process starts")
	flags.Var(&bandwidth, "bandwidth", "bytes per second of an environment's payloads and replies, as 25MB; 0: no limit")
	flags.BoolVar(&o.NoFreeze, "no-freeze", false, "leave workers running between calls")
	flags.StringVar(&o.Cgroup, "cgroup", "", "cgroup v2 folder for the workers' limits, or none (default: look for one)")
	flags.StringVar(&chaos, "chaos", "", "faults to inject, see above")
	return cmd
}

// workerCommand is the worker's program as an absolute path.
func workerCommand(given string) ([]string, error) {
	if given == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", workerName, err)
		}
		given = filepath.Join(filepath.Dir(self), workerName)
	}
	path, err := filepath.Abs(given)
	if err != nil {
		return nil, fmt.Errorf("find the worker %s: %w", given, err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("find the worker: %w; build it with ./build.sh build, or name one by --worker", err)
	}
	return []string{path}, nil
}

// variables are NAME=VALUE texts as a map.
func variables(texts []string) (map[string]string, error) {
	env := make(map[string]string)
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usagef("--env=%s: give NAME=VALUE", text)
		}
		env[name] = value
	}
	return env, nil
}
