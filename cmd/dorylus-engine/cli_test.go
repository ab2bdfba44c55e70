package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// program is the path of the real binary, built once.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dorylus-engine")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "dorylus-engine")
	if out, err := exec.Command("go", "build", "-tags", programTags, "-ldflags", "-X main.version=test", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// result is what one call of the program gave.
type result struct {
	code     int
	out, err string
}

// call runs the program in dir with only the settings of env.
func call(t *testing.T, dir string, env []string, args ...string) result {
	t.Helper()
	return finish(t, command(t, args...), dir, env)
}

// command is the program with arguments; it is killed if it hangs.
func command(t *testing.T, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, program, args...)
}

func finish(t *testing.T, cmd *exec.Cmd, dir string, env []string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env = dir, append(cleanEnv(), env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %q: %v", cmd.Args, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// cleanEnv is the environment without settings.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, envPrefix) {
			env = append(env, kv)
		}
	}
	return env
}

// mustRun is the standard output of a call that must succeed.
func mustRun(t *testing.T, dir string, args ...string) string {
	t.Helper()
	r := call(t, dir, nil, args...)
	if r.code != exitDone {
		t.Fatalf("dorylus-engine %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

func itoa(n int) string { return strconv.Itoa(n) }

// sha is the SHA-256 of data in hexadecimal.
func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// write makes files below dir: path and content by turns.
func write(t *testing.T, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// wantFailure checks a call that must fail with one line that holds every text.
func wantFailure(t *testing.T, r result, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit %d, want %d\n%s%s", r.code, code, r.out, r.err)
	}
	if r.out != "" {
		t.Errorf("wrote to standard output: %s", r.out)
	}
	var last []string
	for _, line := range strings.Split(strings.TrimSpace(r.err), "\n") {
		if strings.HasPrefix(line, "dorylus-engine: ") {
			last = append(last, line)
		}
	}
	if len(last) != 1 || !strings.HasSuffix(strings.TrimSpace(r.err), last[0]) {
		t.Errorf("want one line that begins with dorylus-engine: and ends the output, got\n%s", r.err)
		return
	}
	for _, text := range texts {
		if !strings.Contains(last[0], text) {
			t.Errorf("%q is missing in\n%s", text, last[0])
		}
	}
}
