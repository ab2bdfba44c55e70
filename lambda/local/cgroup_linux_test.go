package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestGroupFiles: the limits as the kernel reads them, written to a plain folder.
func TestGroupFiles(t *testing.T) {
	base := t.TempDir()
	c := &confiner{base: base}
	cmd := exec.Command("/worker")
	l := c.prepare(cmd, "one", 192)
	t.Cleanup(func() { l.folder.Close() })
	if !cmd.SysProcAttr.UseCgroupFD || cmd.SysProcAttr.CgroupFD != int(l.folder.Fd()) || len(cmd.Env) != 0 {
		t.Errorf("attributes %+v, variables %q", cmd.SysProcAttr, cmd.Env)
	}
	for name, want := range map[string]string{
		"cpu.max": "10853 100000", "memory.max": "201326592", "memory.swap.max": "0", "memory.oom.group": "1",
	} {
		if got := readWord(base + "/one/" + name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if err := os.WriteFile(base+"/one/memory.peak", []byte("10485761\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if mb := l.peakMB(0); mb != 11 {
		t.Errorf("a peak of 10485761 bytes is %d MB, want 11", mb)
	}
	if want := "cgroup " + base + "/one: cpu.max 0.109, memory.max 192 MiB"; l.text != want {
		t.Errorf("text %q, want %q", l.text, want)
	}
}

// TestNoGroup: where there is no cgroup to use, the reason is told and nothing is
// left behind.
func TestNoGroup(t *testing.T) {
	folder := t.TempDir()
	if c := findConfiner(folder, "/proc/self/cgroup"); c.base != "" || c.why != "no cgroup v2 at "+folder {
		t.Errorf("found %+v", c)
	}
	if _, err := newConfiner(folder); err == nil || !strings.Contains(err.Error(), "hands on the controllers []") {
		t.Errorf("a plain folder: %v", err)
	}
	if left, err := filepath.Glob(folder + "/dorylus*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	l := (&confiner{why: "reasons"}).prepare(exec.Command("/worker"), "one", 10240)
	if want := "cpu: GOMAXPROCS=6 for a share of 5.789; memory: GOMEMLIMIT=9216MiB and RLIMIT_DATA (reasons)"; l.text != want {
		t.Errorf("text %q, want %q", l.text, want)
	}
}

// TestGroup: where cgroups can be made, workers run in one of their own, die when
// they take more than their memory, and their folders go with them.
func TestGroup(t *testing.T) {
	c, err := newConfiner("")
	if err != nil {
		t.Fatal(err)
	}
	if c.base == "" {
		t.Skipf("no cgroup v2 with cpu and memory that this program may use (%s): run the test in a delegated one, such as that of `systemd-run --user --scope -p Delegate=yes`", c.why)
	}
	c.close()
	h := newHarness(t, func(o *Options) { o.Cgroup = "" })
	a := h.tell(order{})
	text, err := os.ReadFile("/proc/" + strconv.Itoa(a.PID) + "/cgroup")
	start := h.waitKind(1, ColdStart)
	if err != nil || !strings.Contains(string(text), "/dorylus-lambda-") || !strings.HasPrefix(start.Text, "cgroup ") {
		t.Errorf("the worker is in %q (%v); event %+v", text, err, start)
	}
	out, err := h.invoke(order{Do: "fill", N: 600})
	if m := failed(t, result{out, err}, "Runtime.ExitError"); !strings.Contains(m, "signal: killed") {
		t.Errorf("600 MB in 256: %s", m)
	}
	base := h.confine.base
	if err := h.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", base, err)
	}
}
