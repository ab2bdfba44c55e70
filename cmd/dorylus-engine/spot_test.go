package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// metadata is an instance's metadata service that gives notice after some questions.
func metadata(t *testing.T, after int64) string {
	t.Helper()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "600")
			_, _ = w.Write([]byte("token"))
		case r.URL.Path == "/latest/meta-data/spot/instance-action" && asked.Add(1) > after:
			_, _ = w.Write([]byte(`{"action": "terminate", "time": "2026-01-02T03:04:05Z"}`))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A spot notice ends the run as SIGTERM does, with a checkpoint.
func TestSpotNoticeIsHeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it waits for EC2 to be asked again")
	}
	dir := t.TempDir()
	env := []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT=" + metadata(t, 1)}
	cut := call(t, dir, env, append(quiet, "--epochs=10000000", "--eval-every=1000000", "--patience=0", "--spot-notice", "--out=RUN")...)
	if cut.code != exitTryAgain || !strings.Contains(cut.err, "--resume=RUN") || !strings.Contains(cut.err, "EC2 will terminate this spot instance") {
		t.Errorf("exit %d, it says %q, want %d and what EC2 does", cut.code, cut.err, exitTryAgain)
	}
	if _, err := lastCheckpoint(filepath.Join(dir, "RUN")); err != nil {
		t.Errorf("no checkpoint to go on from: %v", err)
	}
}

func TestSpotNoticeWithoutAnInstance(t *testing.T) {
	env := []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1"}
	wantFailure(t, call(t, t.TempDir(), env, append(quiet, "--epochs=3", "--spot-notice")...), exitFailed, "--spot-notice", "leave the flag out")
}
