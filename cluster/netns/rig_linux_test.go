package netns

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dorylus/cluster/member"
)

// port is that of all servers: each has a host of its own.
const port = 7070

// remote is what ssh is to the launcher. It ends with the exit code of the command, with 255
// if a signal has ended that; and when it is killed itself, the command lives on, and
// only finds that its standard input has ended.
const remote = `#!/bin/sh
setsid ip netns exec %s$1 sh -c "$2"
code=$?
[ $code != 137 ] || code=255
exit $code
`

// rig is hosts with all that servers need on them.
type rig struct {
	net            *Net
	program        string
	dir, temp      string // all files; those that must not stay
	graphs, params int
}

// newRig makes hosts for so many servers, graph servers first.
func newRig(t *testing.T, graphs, params int, seed uint64) *rig {
	t.Helper()
	r := &rig{program: wanted(t), dir: t.TempDir(), graphs: graphs, params: params}
	r.net = open(t, graphs+params, shaped, seed)
	r.temp = r.path("tmp")
	if err := os.Mkdir(r.temp, 0o755); err != nil {
		t.Fatal(err)
	}
	r.call(t, "certs", "dev", r.path("certs"), fmt.Sprintf("--servers=%d", graphs), fmt.Sprintf("--params=%d", params))
	var hosts strings.Builder
	for i, h := range r.net.Hosts() {
		role := member.Graph
		if i >= graphs {
			role = member.Param
		}
		fmt.Fprintf(&hosts, "%s %d %s\n", h.Addr, port, role)
	}
	r.write(t, "hosts", hosts.String(), 0o644)
	r.write(t, "remote", fmt.Sprintf(remote, r.net.Prefix()), 0o755)
	return r
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// call runs the program here and returns what it prints.
func (r *rig) call(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(r.program, args...)
	cmd.Dir = r.dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// summary is what a run has come to, as far as it may not depend on servers.
type summary struct {
	Weights     string  `json:"weights_sha256"`
	Predictions string  `json:"predictions_sha256"`
	Epochs      int     `json:"epochs_run"`
	Loss        float64 `json:"loss"`
	Test        float64 `json:"test_acc"`
	Reason      string  `json:"reason"`
}

func parse(t *testing.T, out string) (s summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("summary: %v\n%s", err, out)
	}
	if s.Weights == "" || s.Predictions == "" {
		t.Fatalf("a summary without hashes:\n%s", out)
	}
	return s
}

// undisturbed is the run of one process.
func (r *rig) undisturbed(t *testing.T, train ...string) summary {
	t.Helper()
	return parse(t, r.call(t, append([]string{"train", "--json", "--progress=none"}, train...)...))
}

// same compares a run with the undisturbed one.
func same(t *testing.T, what string, got, want summary) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// empty waits until no server runs any more.
func (r *rig) empty(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		n := 0
		for host := range r.net.Hosts() {
			pids, err := r.net.Processes(host)
			if err != nil {
				t.Fatal(err)
			}
			n += len(pids)
		}
		if n == 0 {
			return
		}
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("%d servers still run, 3 minutes after their launcher has ended", n)
		}
	}
}

// nothingLeft fails if a server, a port or a temporary file is left.
func (r *rig) nothingLeft(t *testing.T, runs ...string) {
	t.Helper()
	for i, h := range r.net.Hosts() {
		if running, err := r.net.Processes(i); err != nil || len(running) > 0 {
			t.Errorf("processes left on %s: %v, %v", h.Addr, running, err)
		}
		if ports, err := r.net.Listening(i); err != nil || len(ports) > 0 {
			t.Errorf("ports left open on %s: %v, %v", h.Addr, ports, err)
		}
	}
	left, err := os.ReadDir(r.temp)
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
	for _, run := range runs {
		err := filepath.WalkDir(r.path(run), func(path string, d fs.DirEntry, err error) error {
			if err == nil && (strings.HasPrefix(d.Name(), ".") || strings.HasSuffix(d.Name(), ".old")) {
				t.Errorf("left in the run: %s", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
