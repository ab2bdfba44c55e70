package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/cluster/member"
	"dorylus/engine"
)

// --continue begins anew where there is no checkpoint, and never where there is one that
// cannot be read: the run and its records would be lost.
func TestContinueKeepsWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, eventsFile)
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	settle := func(rank int) error {
		s := &seat{Membership: member.Membership{Role: member.Graph, Rank: rank}, flags: &serveFlags{goOn: true}}
		return s.settle(&engine.Config{OutDir: dir})
	}
	write(events, "{}\n")
	bad := filepath.Join(dir, checkpoints, "epoch-000004")
	write(filepath.Join(bad, "manifest.json"), "{")
	for rank := range 2 {
		if err := settle(rank); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("graph server %d, a damaged checkpoint: %v, want an error that names %s", rank, err, bad)
		}
		if _, err := os.Stat(events); err != nil {
			t.Fatalf("graph server %d: %v, want the records to be kept", rank, err)
		}
	}
	if err := os.RemoveAll(bad); err != nil {
		t.Fatal(err)
	}
	if err := settle(0); err != nil {
		t.Errorf("no checkpoint: %v", err)
	}
	if _, err := os.Stat(events); err == nil {
		t.Error("what an attempt without a checkpoint has left is in the way of the next one")
	}
}
