package launch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dorylus/cluster/member"
	"dorylus/engine/testkit"
)

// asServer makes the test binary a server of a run, or a launcher.
const asServer = "DORYLUS_LAUNCH_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) == "" {
		os.Exit(m.Run())
	}
	if len(os.Args) > 1 && os.Args[1] == "apiserver" {
		fmt.Fprintln(os.Stderr, standIn(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(act(os.Args[1:]))
}

// act does what the words say, one after the other, and returns the exit code.
func act(words []string) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	for _, w := range words {
		verb, arg, _ := strings.Cut(w, "=")
		switch verb {
		case "say":
			fmt.Fprintln(os.Stderr, arg)
		case "print":
			fmt.Println(arg)
		case "exit":
			n, err := strconv.Atoi(arg)
			if err != nil {
				panic(err)
			}
			return n
		case "crash":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "wait": // for a signal, and end as its code says
			switch <-signals {
			case syscall.SIGTERM:
				return exitTryAgain
			default:
				return exitInterrupted
			}
		case "hold": // a named pipe, until the end
			f, err := os.OpenFile(arg, os.O_WRONLY, 0)
			if err != nil {
				panic(err)
			}
			defer f.Close()
		case "see": // that somebody holds it
			f, err := os.Open(arg)
			if err != nil {
				panic(err)
			}
			f.Close()
		case "until": // nobody holds it
			f, err := os.Open(arg)
			if err != nil {
				panic(err)
			}
			_, _ = io.Copy(io.Discard, f)
		case "deaf":
			select {}
		case "child": // a process that stays behind in the group
			cmd := exec.Command(os.Args[0], "deaf")
			cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{os.NewFile(3, "alive")}
			if err := cmd.Start(); err != nil {
				panic(err)
			}
		case "word": // a signal as a word on standard input
			line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
			fmt.Fprintf(os.Stderr, "got %q\n", line)
			return exitTryAgain
		case "launch": // a launcher with servers of its own
			_, err := Run(context.Background(), []Server{stub(nil, member.Graph, 0, "say=up", "deaf"), stub(nil, member.Graph, 1, "deaf")}, Options{Err: os.Stderr})
			panic(err)
		default:
			panic(w)
		}
	}
	return exitDone
}

// stub is a server that does what words say. It holds alive open.
func stub(alive *os.File, role member.Role, rank int, words ...string) Server {
	if alive == nil {
		alive = os.NewFile(3, "alive")
	}
	return Server{
		Placed: member.Placed{Role: role, Rank: rank, Address: fmt.Sprintf("%s:%d", role, rank)},
		Path:   os.Args[0], Args: words, Env: append(os.Environ(), asServer+"=1"), Files: []*os.File{alive},
	}
}

// lives gives a file for servers to hold open, and a check that all that did are gone.
func lives(t *testing.T) (alive *os.File, gone func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return w, func() {
		t.Helper()
		w.Close()
		if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Errorf("a process is left over: %v", err)
		}
		r.Close()
	}
}

// exits says how servers ended: "graph 0: 0, param 0: 75 told".
func exits(o *Outcome) string {
	var all []string
	for _, e := range o.Exits {
		s := fmt.Sprintf("%s %d: %d", e.Server.Role, e.Server.Rank, e.Code)
		if e.Signal != 0 {
			s = fmt.Sprintf("%s %d: %v", e.Server.Role, e.Server.Rank, e.Signal)
		}
		if e.Told {
			s += " told"
		}
		all = append(all, s)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestRun(t *testing.T) {
	testkit.Leaks(t)
	alive, gone := lives(t)
	path := pipe(t)
	var errs bytes.Buffer
	out, err := Run(t.Context(), []Server{
		stub(alive, member.Graph, 0, "see="+path, "say=epoch 1", "say=dorylus-engine: warning: slow disk", "print={}", "child"),
		stub(alive, member.Graph, 1, "say=hello", "print=lost?"),
		stub(alive, member.Param, 0, "hold="+path, "wait"),
	}, Options{Err: &errs, IdleGrace: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	gone()
	if got, want := exits(out), "graph 0: 0, graph 1: 0, param 0: 75 told"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if out.Cause() != nil || out.Lost() || out.Leader().Code != 0 || string(out.Output) != "{}\n" {
		t.Errorf("cause %v, leader %v, output %q", out.Cause(), out.Leader(), out.Output)
	}
	for _, line := range []string{"epoch 1\n", "dorylus-engine: warning: slow disk\n", "[graph 1] hello\n", "[graph 1] lost?\n"} {
		if !strings.Contains("\n"+errs.String(), "\n"+line) {
			t.Errorf("%q is missing in\n%s", line, errs.String())
		}
	}
}

// pipe makes a named pipe.
func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The first that ends badly is the cause; one that was killed comes before those that
// missed it. PIPE is held by graph server 1 and ends with it.
func TestLoss(t *testing.T) {
	for _, test := range []struct {
		name           string
		leader, second string
		cause          string
		lost           bool
		exits          string
	}{
		{"a crash", "until=PIPE deaf", "hold=PIPE crash", "graph server 1 at graph:1 was killed by signal 9 (killed)", true, "graph 0: killed told, graph 1: killed, param 0: killed told"},
		{"a crash that others notice", "until=PIPE exit=75", "hold=PIPE crash",
			"graph server 1 at graph:1 was killed by signal 9 (killed)", true, "graph 0: 75, graph 1: killed, param 0: 75 told"},
		{"a failure", "until=PIPE exit=75", "hold=PIPE say=dorylus-engine:_disk_full exit=1", "graph server 1 at graph:1 ended with exit code 1: disk full", false, "graph 0: 75, graph 1: 1, param 0: 75 told"},
		{"a call that is wrong", "until=PIPE exit=75", "hold=PIPE exit=2", "graph server 1 at graph:1 ended with exit code 2", false, "graph 0: 75, graph 1: 2, param 0: 75 told"},
		{"preempted", "exit=75", "exit=75", "ended with exit code 75", true, "graph 0: 75, graph 1: 75, param 0: 75 told"},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Leaks(t)
			alive, gone := lives(t)
			path := pipe(t)
			words := func(text string) []string {
				var all []string
				for _, w := range strings.Fields(text) {
					all = append(all, strings.ReplaceAll(strings.ReplaceAll(w, "_", " "), "PIPE", path))
				}
				return all
			}
			var errs bytes.Buffer
			param := "wait"
			if test.name == "a crash" {
				param = "deaf"
			}
			out, err := Run(t.Context(), []Server{
				stub(alive, member.Graph, 1, words(test.second)...), stub(alive, member.Graph, 0, words(test.leader)...), stub(alive, member.Param, 0, param),
			}, Options{Err: &errs, LossGrace: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			gone()
			got := strings.Replace(exits(out), "terminated told", "75 told", 1) // before it knew what to do
			if got != test.exits {
				t.Errorf("got  %s\nwant %s\n%s", got, test.exits, errs.String())
			}
			if c := out.Cause(); c == nil || !strings.Contains(c.String(), test.cause) || out.Lost() != test.lost {
				t.Errorf("cause %v, lost %v; want %s, %v", c, out.Lost(), test.cause, test.lost)
			}
			if test.name == "a crash" && !strings.Contains(errs.String(), "killing what has not ended in time: graph server 0, parameter server 0") {
				t.Errorf("it does not say whom it kills:\n%s", errs.String())
			}
		})
	}
}

// Signals reach every server; one that does not end is killed.
func TestStop(t *testing.T) {
	for _, test := range []struct {
		name  string
		sig   syscall.Signal
		words []string
		exits string
	}{
		{"terminated", syscall.SIGTERM, []string{"wait"}, "graph 0: 75 told, graph 1: 75 told, param 0: 75 told"},
		{"interrupted", syscall.SIGINT, []string{"wait"}, "graph 0: 130 told, graph 1: 130 told, param 0: 130 told"},
		{"one is deaf", syscall.SIGINT, []string{"deaf"}, "graph 0: 130 told, graph 1: killed told, param 0: 130 told"},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Leaks(t)
			alive, gone := lives(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			said := &trigger{text: "three", count: 3, then: cancel}
			out, err := Run(ctx, []Server{
				stub(alive, member.Graph, 0, "say=three", "wait"), stub(alive, member.Graph, 1, append([]string{"say=three"}, test.words...)...), stub(alive, member.Param, 0, "say=three", "wait"),
			}, Options{Err: said, Signal: func() syscall.Signal { return test.sig }, StopGrace: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			gone()
			if got := exits(out); got != test.exits || out.Cause() != nil || out.Lost() {
				t.Errorf("got %s, want %s; cause %v", got, test.exits, out.Cause())
			}
		})
	}
}

// trigger calls then when text has been written count times.
type trigger struct {
	text  string
	count int
	then  func()
	all   bytes.Buffer
}

func (w *trigger) Write(b []byte) (int, error) {
	w.all.Write(b)
	if n := strings.Count(string(b), w.text); n > 0 {
		if w.count -= n; w.count == 0 {
			w.then()
		}
	}
	return len(b), nil
}

// A server that is not on this machine gets its signal on standard input.
func TestStopByWord(t *testing.T) {
	testkit.Leaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := &trigger{text: "up", count: 1, then: cancel}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s := stub(null, member.Graph, 0, "say=up", "word")
	s.Wired = true
	out, err := Run(ctx, []Server{s}, Options{Err: said, Signal: func() syscall.Signal { return syscall.SIGINT }})
	if err != nil || exits(out) != "graph 0: 75 told" || !strings.Contains(said.all.String(), `got "INT\n"`) {
		t.Errorf("%s (%v)\n%s", exits(out), err, said.all.String())
	}
}

// Of a server on another machine that was killed ssh says 255: the run has lost it.
func TestCutOff(t *testing.T) {
	for _, wired := range []bool{true, false} {
		exits := []*Exit{
			{Server: &Server{Placed: member.Placed{Role: member.Graph}, Wired: wired}, Code: exitTryAgain},
			{Server: &Server{Placed: member.Placed{Role: member.Graph, Rank: 1}, Path: "/usr/bin/ssh", Wired: wired}, Code: 255},
		}
		out := &Outcome{Exits: exits}
		if out.Cause() != exits[1] || out.Lost() != wired || strings.Contains(out.Cause().How(), "exit code 255 of ssh") != wired {
			t.Errorf("wired %v: lost %v, because %v", wired, out.Lost(), out.Cause())
		}
	}
}

// One that is to be killed hears it by a word; what brings it the word is only killed when
// it does not end for that.
func TestKillByWord(t *testing.T) {
	testkit.Leaks(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for words, want := range map[string]string{
		"word": "graph 0: killed, graph 1: 75 told",
		"deaf": "graph 0: killed, graph 1: killed told",
	} {
		var errs bytes.Buffer
		other := stub(null, member.Graph, 1, words)
		other.Wired = true
		out, err := Run(t.Context(), []Server{stub(null, member.Graph, 0, "crash"), other}, Options{Err: &errs, LossGrace: time.Second})
		if err != nil || exits(out) != want || words == "word" && !strings.Contains(errs.String(), `got "KILL\n"`) {
			t.Errorf("%s: %s, want %s (%v)\n%s", words, exits(out), want, err, errs.String())
		}
	}
}

// When the launcher is killed, so are its servers.
func TestLauncherIsKilled(t *testing.T) {
	alive, gone := lives(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "launch")
	cmd.Env, cmd.Stderr, cmd.ExtraFiles = append(os.Environ(), asServer+"=1"), w, []*os.File{alive}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	defer r.Close()
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || line != "up\n" {
		t.Errorf("the launcher says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	gone()
}

func TestNoSuchProgram(t *testing.T) {
	testkit.Leaks(t)
	alive, gone := lives(t)
	bad := stub(alive, member.Param, 0)
	bad.Path = "/nowhere/dorylus-engine"
	out, err := Run(t.Context(), []Server{stub(alive, member.Graph, 0, "deaf"), bad}, Options{Err: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "start parameter server 0: ") || !strings.Contains(err.Error(), "/nowhere/dorylus-engine") {
		t.Errorf("got %v, %v", out, err)
	}
	gone()
}

// A set is started again while servers are lost, and no more often than it may be.
func TestSupervise(t *testing.T) {
	for _, test := range []struct {
		name     string
		most     int
		attempts [][]string // what graph server 1 does
		ran      int
		lost     bool
	}{
		{"all well", 3, [][]string{{"exit=0"}}, 1, false},
		{"lost once", 3, [][]string{{"crash"}, {"exit=0"}}, 2, false},
		{"lost and preempted", 2, [][]string{{"crash"}, {"exit=75"}, {"exit=0"}}, 3, false},
		{"lost too often", 1, [][]string{{"crash"}, {"crash"}, {"exit=0"}}, 2, true},
		{"failed", 3, [][]string{{"exit=1"}, {"exit=0"}}, 1, false},
		{"not at all", 0, [][]string{{"crash"}, {"exit=0"}}, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Leaks(t)
			alive, gone := lives(t)
			var reasons []string
			var errs bytes.Buffer
			out, err := Supervise(t.Context(), Restarts{Max: test.most, Servers: func(attempt int, why string) ([]Server, error) {
				reasons = append(reasons, why)
				return []Server{stub(alive, member.Graph, 0, "print=attempt "+strconv.Itoa(attempt)), stub(alive, member.Graph, 1, test.attempts[attempt]...)}, nil
			}}, Options{Err: &errs})
			if err != nil {
				t.Fatal(err)
			}
			gone()
			if len(reasons) != test.ran || out.Lost() != test.lost || string(out.Output) != fmt.Sprintf("attempt %d\n", test.ran-1) {
				t.Errorf("%d attempts, lost %v, output %q; want %d, %v\n%s", len(reasons), out.Lost(), out.Output, test.ran, test.lost, errs.String())
			}
			for i, why := range reasons[1:] {
				if !strings.Contains(why, "graph server 1 at graph:1 ") || !strings.Contains(errs.String(), fmt.Sprintf("starting all servers again (%d of %d): %s", i+1, test.most, why)) {
					t.Errorf("restart %d because of %q\n%s", i+1, why, errs.String())
				}
			}
		})
	}
}
