package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dorylus/cluster/launch"
	"dorylus/engine"
	"dorylus/engine/sink"
)

func (a *app) launchLocalCommand() *cobra.Command {
	var f launchFlags
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Train with several server processes on this machine",
		Long: `Local starts graph servers and parameter servers as processes on free ports of loopback, with certificates
made for this run, and prints what one process would: progress, then the summary of graph server 0. With
--mode=gpu each graph server takes a GPU of its own, the first ones or those of --gpu, one for each.
It takes the train flags. Ctrl-C and SIGTERM reach all servers, which write a checkpoint. No process, port
or file but --out is left, however it ends.`,
		Example: `  dorylus-engine launch local --servers=4 --params=2 --data=mystore --out=RUN --max-restarts=3`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.launchSettings(cmd)
			if err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			return a.launchLocal(cmd.Context(), r, &f)
		},
	}
	cmd.Flags().IntVar(&f.servers, "servers", 2, "graph servers, each with a part of the graph")
	inGroup(cmd.Flags().Lookup("servers"), groupCluster)
	f.add(cmd, 0)
	addSettings(cmd)
	return cmd
}

// launchLocal trains c.Runs times, one after the other.
func (a *app) launchLocal(ctx context.Context, r *resolved, f *launchFlags) error {
	c := &r.Config
	if c.Mode == "gpu" { // rather than after all have started; the last server may lack one
		a.local, a.mates = f.servers-1, f.servers
		if err := a.chooseGPUs(c); err != nil {
			return err
		}
	}
	if c.DryRun {
		if err := a.dryRun(ctx, r); err != nil || c.JSON {
			return err
		}
		_, err := fmt.Fprintf(a.out, "It would run on %d graph servers and %d parameter servers, all processes of this machine.\n", f.servers, f.params)
		return err
	}
	if c.OutDir == "" {
		c.OutDir = c.Resume
	}
	folder, err := openRunFolder(c)
	if err != nil {
		return err
	}
	defer folder.discard() // if nothing is in it
	if c.Runs == 1 {
		out, err := a.launchOnce(ctx, r, c, f)
		if out != nil {
			if _, printErr := a.out.Write(out.Output); printErr != nil {
				err = errors.Join(err, printErr)
			}
		}
		return err
	}
	var runs []sink.Summary
	for run := range c.Runs {
		one := *c
		one.Seed, one.OutDir, one.JSON = c.Seed+uint64(run), folder.sub(run, c.Runs), true
		numbered := *f
		numbered.run = run
		var out *launch.Outcome
		if out, err = a.launchOnce(ctx, r, &one, &numbered); out != nil && len(out.Output) > 0 {
			var s sink.Summary
			if jsonErr := json.Unmarshal(out.Output, &s); jsonErr != nil {
				return errors.Join(err, fmt.Errorf("read the summary of run %d: %w", run, jsonErr))
			}
			runs = append(runs, s)
		}
		if err != nil {
			break
		}
	}
	if len(runs) == 0 {
		return err
	}
	sum := sink.Merge(runs)
	return errors.Join(err, folder.keep(c, sum), a.conclude(c, folder, sum))
}

// localGrace is how long servers may take to end when one on the same machine is gone:
// there is nothing that it could come back from.
const localGrace = 3 * time.Second

// launchOnce trains once, on processes of this program.
func (a *app) launchOnce(ctx context.Context, r *resolved, c *engine.Config, f *launchFlags) (out *launch.Outcome, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	local, err := launch.OpenLocal(f.servers, f.params)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	job, err := runName()
	if err != nil {
		return nil, err
	}
	env := a.plainEnv()
	return a.supervise(ctx, f, c.OutDir, localGrace, func(number int, why string) ([]launch.Server, error) {
		common, train := a.attempt(c, f, number, why)
		spec := &launch.Spec{
			Job: fmt.Sprintf("%s-%d", job, number), Servers: local.Servers,
			Common: append(f.common(c), common...), Train: append(withoutDevice(r.trainFlags()), train...),
		}
		return local.Processes(program, env, spec), nil
	})
}

// withoutDevice leaves out what all servers are told.
func withoutDevice(flags []string) []string {
	var rest []string
	for _, f := range flags {
		if !strings.HasPrefix(f, "--device=") {
			rest = append(rest, f)
		}
	}
	return rest
}

// runName is a name that no other run has.
func runName() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name the run: %w", err)
	}
	return "run-" + hex.EncodeToString(b[:]), nil
}

// plainEnv is the environment without settings, which servers get as flags.
func (a *app) plainEnv() []string {
	var env []string
	for _, kv := range a.env {
		name, _, _ := strings.Cut(kv, "=")
		if rest, ok := strings.CutPrefix(name, envPrefix); ok && !isOtherEnv(rest) {
			continue
		}
		env = append(env, kv)
	}
	return env
}
