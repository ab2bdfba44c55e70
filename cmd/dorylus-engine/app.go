package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"dorylus/engine"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// version is set by the linker (see Makefile).
var version = ""

// app is what all commands share: where they write and what surrounds them.
type app struct {
	out, err io.Writer
	env      []string     // "NAME=value"
	columns  int          // of the terminal behind err; 0: it is none
	seat     *seat        // among several servers; nil: this process is the only one
	share    engine.Group // those that predict together; nil: as above
	gpu      *gpuChoice   // in mode gpu, once they are chosen
	// local is this graph server's number among the mates of its host.
	local, mates int
}

func newApp(out, err *os.File, env []string) *app {
	a := &app{out: out, err: err, env: env}
	a.registerGPUs()
	if fd := int(err.Fd()); term.IsTerminal(fd) {
		a.columns = 80
		if w, _, sizeErr := term.GetSize(fd); sizeErr == nil && w > 0 {
			a.columns = w
		}
	}
	return a
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, a *app) int {
	root := newRoot(a)
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code := exitFailed
	var coded *codedError
	var signal stopped
	switch {
	case errors.As(err, &coded):
		code = coded.code
	case errors.As(err, &signal):
		code = exitInterrupted
	}
	for _, line := range problems(err) {
		fmt.Fprintf(a.err, "dorylus-engine: %s\n", line)
	}
	return code
}

// codedError is an error with an exit code of its own.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// usage is a mistake in how the program was called.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &codedError{exitUsage, err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// problems splits an error that joins several into one line each.
func problems(err error) []string {
	var coded *codedError
	if errors.As(err, &coded) && coded.Error() == err.Error() {
		err = coded.err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var texts, lines []string
		for _, e := range joined.Unwrap() {
			texts = append(texts, e.Error())
			lines = append(lines, problems(e)...)
		}
		if err.Error() == strings.Join(texts, "\n") { // of errors.Join, not of two %w in a sentence
			return lines
		}
	}
	if errors.Is(err, syscall.ENOSPC) {
		return []string{err.Error() + "; free some space, or choose a folder on another disk"}
	}
	return []string{err.Error()}
}

// newRoot is the command table. The bare command trains.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "dorylus-engine",
		Short:         "Train graph neural networks on whole graphs",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	a.setUpTrain(root)
	root.Long = `Dorylus trains graph neural networks on the whole graph, without sampling, on cheap servers.

Without a command it trains, as "dorylus-engine train" does: by default a GCN on the built-in Cora
graph, on this machine's cores.`
	root.AddCommand(
		a.trainCommand(), a.compareCommand(), a.planCommand(), a.prepareCommand(), a.checkCommand(), a.predictCommand(),
		a.reportCommand(), a.devicesCommand(), a.pricesCommand(), a.lambdaCommand(), a.serveCommand(), a.launchCommand(), a.certsCommand(), a.configCommand(), a.versionCommand(),
	)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(groupedUsage)
	root.SetVersionTemplate("dorylus-engine {{.Version}}\n")
	root.InitDefaultHelpCmd()
	return root
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out, "dorylus-engine", versionText())
			return err
		},
	}
}

// versionText is the linker's version, else the commit that the go command
// recorded, else "unknown".
func versionText() string {
	if version != "" {
		return version
	}
	commit, dirty := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "+changes"
			}
		}
	}
	if commit == "" {
		return "unknown"
	}
	return commit + dirty
}

// noArgs refuses words that are neither commands nor flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	word := args[0]
	if word == "true" || word == "false" {
		return usagef("%q stands alone: write --flag=%s, with an equals sign", word, word)
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if len(names) == 0 {
		return usagef("%s takes no argument, but got %q", cmd.CommandPath(), word)
	}
	if near := nearest(word, names); near != "" {
		return usagef("unknown command %q; did you mean %q?", word, near)
	}
	if _, err := os.Stat(word); err == nil {
		return usagef("unknown command %q; to train on that data, write --data=%s", word, word)
	}
	return usagef("unknown command %q; commands are %s", word, strings.Join(names, ", "))
}

// oneArg wants exactly one argument, called what.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			return nil
		case 0:
			return usagef("%s: name %s; see %s --help", cmd.Name(), what, cmd.CommandPath())
		}
		return usagef("%s: %q is one word too many: name %s, and flags", cmd.Name(), args[1], what)
	}
}

// note tells the user something on standard error, unless only JSON is wanted.
func (a *app) note(quiet bool, format string, args ...any) {
	if !quiet {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// warn reports a sink that cannot write any more.
func (a *app) warn(err error) { fmt.Fprintf(a.err, "dorylus-engine: warning: %v\n", err) }
