package certs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dorylus/cluster/rpc"
)

func TestWriteMakesIdentities(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	names, err := Write(dir, Plan{Graphs: 2, Params: 1, Hosts: []string{"localhost", "127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 1+2*3 {
		t.Errorf("wrote %q, want the authority and two files for each of 3 servers", names)
	}
	for _, want := range []rpc.Who{{Run: DevRun, Role: rpc.Graph, Rank: 0}, {Run: DevRun, Role: rpc.Graph, Rank: 1}, {Run: DevRun, Role: rpc.Param, Rank: 0}} {
		f := Paths(dir, want.Role, want.Rank)
		id, err := rpc.LoadIdentity(f)
		if err != nil {
			t.Fatal(err)
		}
		if id.Who() != want {
			t.Errorf("%s proves %+v, want %+v", f.Cert, id.Who(), want)
		}
		if s, err := os.Stat(f.Key); err != nil || s.Mode().Perm() != 0o600 {
			t.Errorf("the key %s can be read by others: %v, %v", f.Key, s.Mode(), err)
		}
	}
	if _, err := Write(dir, Plan{Graphs: 1}); err == nil || !strings.Contains(err.Error(), "ca.pem is there already") {
		t.Errorf("a second time: %v, want a refusal", err)
	}
	if _, err := rpc.LoadIdentity(Paths(dir, rpc.Graph, 0)); err != nil {
		t.Errorf("the refusal has harmed the files: %v", err)
	}
}

// A failure half-way leaves none of its files, and all of those of others.
func TestWriteIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "graph-1.pem")
	if err := os.WriteFile(other, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	names, err := Write(dir, Plan{Graphs: 3})
	if err == nil || names != nil {
		t.Fatalf("wrote %q, %v, want a refusal", names, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "graph-1.pem" {
		t.Errorf("left %v, %v, want graph-1.pem alone", left, err)
	}
}

func TestRefusals(t *testing.T) {
	if _, err := Write(t.TempDir(), Plan{}); err == nil || !strings.Contains(err.Error(), "at least one server") {
		t.Errorf("no servers: %v", err)
	}
	if _, err := New(DevRun, 0); err == nil {
		t.Error("certificates that are never valid were made")
	}
	for _, run := range []string{"", "a b", "a//b", "a?b", "a/graph/0/", "user@a"} {
		if _, err := New(run, time.Hour); err == nil {
			t.Errorf("run %q was accepted", run)
		}
	}
	a, err := New(DevRun, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Issue("king", 0, nil); err == nil || !strings.Contains(err.Error(), "king") {
		t.Errorf("role king: %v", err)
	}
}
