package main

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// standing is servers that a test has started by hand.
type standing struct {
	t              *testing.T
	dir            string
	graphs, params []string
}

// stand finds free ports.
func stand(t *testing.T, graphs, params int) *standing {
	t.Helper()
	s := &standing{t: t, dir: t.TempDir()}
	for i := range graphs + params {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if i < graphs {
			s.graphs = append(s.graphs, l.Addr().String())
		} else {
			s.params = append(s.params, l.Addr().String())
		}
	}
	return s
}

// server is one that runs.
type server struct {
	cmd  *exec.Cmd
	errs bytes.Buffer
	done chan error
}

// start starts a server, and waits until it listens.
func (s *standing) start(role string, rank int, env []string, args ...string) *server {
	s.t.Helper()
	x := &server{done: make(chan error, 1)}
	x.cmd = command(s.t, append([]string{"serve", role, fmt.Sprint("--rank=", rank), "--graphs=" + strings.Join(s.graphs, ","), "--params=" + strings.Join(s.params, ","), "--insecure"}, args...)...)
	x.cmd.Dir, x.cmd.Env, x.cmd.Stderr = s.dir, append(cleanEnv(), env...), &x.errs
	if err := x.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { x.done <- x.cmd.Wait() }()
	addr := s.graphs
	if role == "param" {
		addr = s.params
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := net.Dial("tcp", addr[rank])
		if err == nil {
			_ = c.Close()
			return x
		}
		select {
		case <-tick.C:
		case <-x.done:
			s.t.Fatalf("%s %d has ended: %s", role, rank, x.errs.String())
		}
	}
}

// ends waits for a server's end, and is its exit code.
func (x *server) ends() (code int, words string) {
	<-x.done
	return x.cmd.ProcessState.ExitCode(), x.errs.String()
}

// wants checks how a server ends.
func (x *server) wants(t *testing.T, what string, code int, words string) {
	t.Helper()
	if got, text := x.ends(); got != code || !strings.Contains(text, words) {
		t.Errorf("%s: exit %d, want %d and %q\n%s", what, got, code, words, text)
	}
}

func (x *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := x.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// A parameter server that waits for its run ends at once when it is told to.
func TestAWaitingParameterServerEnds(t *testing.T) {
	for args, code := range map[string]int{"--peer-timeout=20s": exitFailed, "--continue": exitTryAgain} {
		s := stand(t, 1, 1)
		x := s.start("param", 0, nil, args)
		x.signal(t, syscall.SIGTERM)
		x.wants(t, args, code, "told to stop (terminated) before")
	}
}

// train starts two graph servers, and waits for the first epochs.
func (s *standing) train() (graphs []*server) {
	s.t.Helper()
	args := append(append([]string{}, quiet...), "--epochs=10000000", "--eval-every=1", "--checkpoint-every=1", "--patience=0", "--out=RUN", "--progress=none")
	for rank := range s.graphs {
		graphs = append(graphs, s.start("graph", rank, nil, args...))
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := lastCheckpoint(filepath.Join(s.dir, "RUN")); err == nil {
			return graphs
		}
		select {
		case <-tick.C:
		case <-graphs[0].done:
			s.t.Fatalf("graph server 0 has ended: %s", graphs[0].errs.String())
		}
	}
}

// Whichever server is told to stop, the run ends with a checkpoint, and all of them with
// the code by which they are started again.
func TestOneServerIsToldToStop(t *testing.T) {
	for _, who := range []string{"the parameter server", "graph server 1"} {
		s := stand(t, 2, 1)
		param := s.start("param", 0, nil)
		graphs := s.train()
		if who == "graph server 1" {
			graphs[1].signal(t, syscall.SIGTERM)
		} else {
			param.signal(t, syscall.SIGTERM)
		}
		words := []string{"another server was told to stop", "stop"}
		for rank, g := range graphs {
			g.wants(t, fmt.Sprintf("%s is told to stop; graph server %d", who, rank), exitTryAgain, words[rank])
		}
		param.wants(t, who+" is told to stop; the parameter server", exitTryAgain, "stop")
	}
}

// A spot notice to a parameter server stops the run as SIGTERM does.
func TestASpotNoticeToAParameterServer(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it waits for EC2 to be asked again")
	}
	s := stand(t, 2, 1)
	param := s.start("param", 0, []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT=" + metadata(t, 1)}, "--spot-notice")
	for rank, g := range s.train() {
		g.wants(t, fmt.Sprintf("graph server %d", rank), exitTryAgain, "another server was told to stop")
	}
	param.wants(t, "the parameter server", exitTryAgain, "EC2 will terminate this spot instance")
}
