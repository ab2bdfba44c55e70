package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dorylus/cluster/launch"
	"dorylus/engine"
)

func (a *app) launchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "launch",
		Short: "Train on several servers: processes here, machines by ssh, Kubernetes",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.launchLocalCommand(), a.launchSSHCommand(), a.launchK8sCommand())
	return cmd
}

// launchFlags are what launch is told besides the settings.
type launchFlags struct {
	servers, params int
	restarts        int
	ready           time.Duration
	peer, stall     time.Duration
	run             int // of --runs
}

func (f *launchFlags) add(cmd *cobra.Command, restarts int) {
	set := cmd.Flags()
	set.SortFlags = false
	set.IntVar(&f.params, "params", 1, "parameter servers")
	set.IntVar(&f.restarts, "max-restarts", restarts, "how often to start all servers again, from the last checkpoint, when one is lost")
	set.DurationVar(&f.ready, "ready-timeout", defaultReady, "how long servers may take to appear")
	set.DurationVar(&f.peer, "peer-timeout", defaultPeer, "how long a server may be out of reach before it counts as lost, such as 90s or 2m; where packets vanish without a word it takes 10 to 20 s more to notice")
	set.DurationVar(&f.stall, "stall-timeout", defaultStall, "how long a server that can be reached may keep the others waiting before it counts as lost, such as 30m or 2h")
	for _, name := range []string{"params", "max-restarts", "ready-timeout", "peer-timeout", "stall-timeout"} {
		inGroup(set.Lookup(name), groupCluster)
	}
}

func (f *launchFlags) check() error {
	var errs []error
	if f.servers < 1 {
		errs = append(errs, fmt.Errorf("--servers=%d: give 1 or more", f.servers))
	}
	if f.params < 1 {
		errs = append(errs, fmt.Errorf("--params=%d: give 1 or more", f.params))
	}
	if f.restarts < 0 {
		errs = append(errs, fmt.Errorf("--max-restarts=%d: give 0 or more", f.restarts))
	}
	if f.ready <= 0 || f.peer <= 0 || f.stall <= 0 {
		errs = append(errs, fmt.Errorf("--ready-timeout=%v, --peer-timeout=%v, --stall-timeout=%v: give times above 0", f.ready, f.peer, f.stall))
	}
	return usage(errors.Join(errs...))
}

// notPassed are settings that a launcher does not hand on as they are.
var notPassed = []string{"json", "dry-run", "runs", "seed", "out", "resume", "progress"}

// trainFlags are the settings that are not defaults, as flags of graph servers.
func (r *resolved) trainFlags() []string {
	var flags []string
	for _, s := range r.Settings() {
		if r.origin[s.Name] != "default" && !slices.Contains(notPassed, s.Name) {
			flags = append(flags, "--"+s.Name+"="+s.Text())
		}
	}
	return flags
}

// settings resolves and checks the settings of a launch.
func (a *app) launchSettings(cmd *cobra.Command) (*resolved, error) {
	r, err := a.resolve(cmd)
	if err != nil {
		return nil, err
	}
	if err := r.Config.Validate(); err != nil {
		return nil, usage(err)
	}
	return r, nil
}

// common are the flags of all servers.
func (f *launchFlags) common(c *engine.Config) []string {
	flags := []string{"--ready-timeout=" + f.ready.String(), "--peer-timeout=" + f.peer.String(), "--stall-timeout=" + f.stall.String()}
	if c.Device != "auto" {
		flags = append(flags, "--device="+c.Device)
	}
	if c.SpotNotice {
		flags = append(flags, "--spot-notice")
	}
	return flags
}

// attempt are the flags of graph servers that an attempt of one run adds: its seed and
// folder, how it shows itself, and whether it goes on with the one before.
func (a *app) attempt(c *engine.Config, f *launchFlags, number int, why string) (common, train []string) {
	train = []string{fmt.Sprintf("--seed=%d", c.Seed), "--progress=" + c.Progress}
	if c.OutDir != "" {
		train = append(train, "--out="+c.OutDir)
	}
	if c.Resume != "" {
		train = append(train, "--resume="+c.Resume)
	}
	if c.JSON {
		train = append(train, "--json")
	}
	if c.Progress == "auto" && a.columns > 0 {
		train = append(train, fmt.Sprintf("--columns=%d", a.columns))
	}
	if f.run > 0 {
		train = append(train, fmt.Sprintf("--run=%d", f.run))
	}
	if number > 0 {
		train = append(train, "--because="+why)
		if c.OutDir != "" || c.Resume != "" {
			train = append(train, "--continue")
		}
	}
	if number < f.restarts {
		common = append(common, "--again")
	}
	return common, train
}

// supervise runs the servers of a run into folder out, and says what came of it. When one
// is lost the others have so long to end. The leader's standard output is in the outcome.
func (a *app) supervise(ctx context.Context, f *launchFlags, out string, grace time.Duration, servers func(number int, why string) ([]launch.Server, error)) (*launch.Outcome, error) {
	o := launch.Options{Err: a.err, Signal: func() syscall.Signal { return signalOf(ctx) }, LossGrace: grace}
	end, err := launch.Supervise(ctx, launch.Restarts{Max: f.restarts, Servers: servers}, o)
	if err != nil {
		return nil, err
	}
	return end, a.verdict(ctx, end, out)
}

// signalOf is the signal that ended ctx.
func signalOf(ctx context.Context) syscall.Signal {
	var s stopped
	if errors.As(context.Cause(ctx), &s) && s.Signal == os.Interrupt {
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

// verdict is the error, with its exit code, of a run into folder kept whose servers ended
// so.
func (a *app) verdict(ctx context.Context, out *launch.Outcome, kept string) error {
	leader, cause := out.Leader(), out.Cause()
	said := func(e *launch.Exit) error {
		if len(e.Words) == 0 || e.Code < 0 {
			return errors.New(e.String())
		}
		var errs []error
		for _, w := range e.Words {
			errs = append(errs, errors.New(w))
		}
		return errors.Join(errs...)
	}
	switch {
	case leader == nil: // it could not even be waited for
		return errors.New("graph server 0 is gone")
	case cause == nil && leader.Code == exitDone:
		return nil
	case ctx.Err() != nil || cause == nil: // it was told to stop, and says how that went
		code := leader.Code
		if code <= 0 {
			code = exitFailed
		}
		return &codedError{code, said(leader)}
	case cause == leader && leader.Code > 0:
		return &codedError{leader.Code, said(leader)}
	}
	code := exitFailed
	text := cause.String()
	hint := resumeHint(leader.Words)
	if _, err := lastCheckpoint(kept); hint == "" && kept != "" && err == nil {
		hint = "go on with --resume=" + kept
	}
	switch {
	case out.Lost() && hint != "":
		code, text = exitTryAgain, text+"; "+hint
	case cause.Code == exitUsage:
		code = exitUsage
	}
	return &codedError{code, errors.New(text)}
}

// resumeHint is how the leader says that its run can be gone on with.
func resumeHint(words []string) string {
	for _, w := range words {
		if i := strings.LastIndex(w, "go on with --resume="); i >= 0 {
			return w[i:]
		}
	}
	return ""
}
