package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dorylus/cluster/launch"
)

// launchPredict predicts by several processes of this program. What a server that was
// killed has left unfinished is removed.
func (a *app) launchPredict(ctx context.Context, f *predictFlags) (err error) {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if _, err := openModel(f); err != nil { // rather than after all have started
		return err
	}
	local, err := launch.OpenLocal(f.servers, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	job, err := runName()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.sweep(job)) }()
	env := a.plainEnv()
	once := &launchFlags{servers: f.servers}
	out, err := a.supervise(ctx, once, "", localGrace, func(int, string) ([]launch.Server, error) {
		spec := &launch.Spec{Job: job, Servers: local.Servers, Serve: "predict", Common: []string{"--quiet"}, Train: f.flags()}
		return local.Processes(program, env, spec), nil
	})
	if out != nil {
		_, printErr := a.out.Write(out.Output)
		err = errors.Join(err, printErr)
	}
	return err
}

// flags are those of a server that predicts as f says.
func (f *predictFlags) flags() []string {
	flags := []string{"--run=" + f.run, "--weights=" + f.weights, fmt.Sprintf("--scores=%v", f.scores)}
	for _, x := range []struct{ name, value string }{{"out", f.out}, {"embeddings", f.embeddings}, {"data", f.data}, {"device", f.device},
		{"mode", f.mode}, {"gpu", f.gpu}, {"gpu-memory", f.gpuMemory}, {"gpu-products", f.gpuProducts}} {
		if x.value != "" {
			flags = append(flags, "--"+x.name+"="+x.value)
		}
	}
	return flags
}

// sweep removes unfinished files of the servers of a job.
func (f *predictFlags) sweep(job string) error {
	var errs []error
	for _, path := range []string{f.out, f.embeddings} {
		if path == "" {
			continue
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			continue // then there is no such file
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), strings.TrimSuffix(unfinished(path, job), "*")) {
				errs = append(errs, os.Remove(filepath.Join(filepath.Dir(path), e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}
