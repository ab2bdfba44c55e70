package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
)

// untilServing is a writer that ends a context when a service says where it is.
type untilServing struct {
	stop context.CancelFunc
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *untilServing) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Contains(p, []byte("use it:")) {
		w.stop()
	}
	return w.text.Write(p)
}

// TestLambdaServe: flags reach the service, wrong ones are told.
func TestLambdaServe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	serve := func(args ...string) (string, error) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		out := &untilServing{stop: stop}
		cmd := (&app{out: out, err: out}).lambdaCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"serve", "--listen=127.0.0.1:0"}, args...))
		cmd.SetOut(out)
		cmd.SetErr(out)
		err := cmd.ExecuteContext(ctx)
		return out.text.String(), err
	}
	text, err := serve("--worker="+self, "--function=gnn", "--memory=512", "--timeout=90s", "--chaos=seed=1,crash=0.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"at http://127.0.0.1:", "function gnn: " + self + ", 512 MB, timeout 1m30s", "0 calls"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	for arg, want := range map[string]string{
		"--worker=no/such":      "build it with ./build.sh build",
		"--memory=64":           "memory of 64 MB",
		"--chaos=crush=1":       "no such fault",
		"--env=x":               "--env=x: give NAME=VALUE",
		"--listen=0.0.0.0:9001": "only loopback",
		"--bandwidth=much":      "no number of bytes",
	} {
		if _, err := serve("--worker="+self, arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", arg, err, want)
		}
	}
}
