package cuda

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv tells this program to be a process that is asked.
const childEnv = "CUDA_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "report":
		_ = json.NewEncoder(os.Stdout).Encode(Report{Driver: "12.8"})
	case "probe":
		_ = json.NewEncoder(os.Stdout).Encode(Probe(Options{Driver: os.Getenv(DriverEnv)}))
	case "garbage":
		os.Stdout.WriteString("{")
	case "fail":
		os.Stderr.WriteString("NVRM: trouble\nmore\n")
		os.Exit(7)
	case "hang":
		never := make(chan os.Signal, 1)
		signal.Notify(never, syscall.SIGUSR1)
		<-never
	}
}

// ask is a child of this program that does what is named.
func ask(t *testing.T, what string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), childEnv+"="+what), env...)
	return cmd
}

func TestAsk(t *testing.T) {
	for what, want := range map[string]string{
		"report":  "",
		"garbage": "gave no report: unexpected end of JSON input; report it",
		"fail":    "the driver ended the process that asked it: exit status 7 (NVRM: trouble); see what",
	} {
		r := Ask(ask(t, what), time.Minute)
		switch {
		case want == "" && (r.Problem != nil || r.Driver != "12.8"):
			t.Errorf("%s: %+v", what, r)
		case want != "" && (r.Problem == nil || !strings.Contains(r.Problem.String(), want)):
			t.Errorf("%s: %v, want %q", what, r.Problem, want)
		}
	}
	if r := Ask(exec.Command("/nowhere/program"), time.Minute); r.Problem == nil || !strings.Contains(r.Problem.Reason, "did not start") {
		t.Errorf("no program: %v", r.Problem)
	}
}

func TestAskOneThatHangs(t *testing.T) {
	begun := time.Now()
	r := Ask(ask(t, "hang"), 300*time.Millisecond)
	if r.Problem == nil || !strings.Contains(r.Problem.String(), "did not answer within 300ms; see whether nvidia-smi answers") {
		t.Errorf("%+v", r)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
