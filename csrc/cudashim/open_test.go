//go:build cuda && cgo && linux && (amd64 || arm64)

package cudashim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dorylus/csrc/cudashim/fakedriver"
)

// childEnv names the driver that a child process opens: a process opens one only.
const childEnv = "CUDASHIM_TEST_DRIVER"

// opening is what a child tells.
type opening struct {
	Before       int // what a driver function returned before Open
	Op           string
	Code         int
	Error        string
	Again, Other string // what a second Open returned, and one of another path
	State        Status
	HostCode     int
	Name, Text   string // of code 2
	Log          string // of a bad module
	Module       int
	Bad          int
	Shared       []int // codes of AllowShared for a fitting and an excessive size
}

func TestMain(m *testing.M) {
	path, ok := os.LookupEnv(childEnv)
	if !ok {
		os.Exit(m.Run())
	}
	var o opening
	_, o.Before = HostAlloc(64)
	err := Open(path)
	var failed *Error
	if errors.As(err, &failed) {
		o.Op, o.Code = failed.Op, failed.Code
	}
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	o.Error, o.Again, o.Other = text(err), text(Open(path)), text(Open(path+"x"))
	o.State = State()
	_, o.HostCode = HostAlloc(64)
	o.Name, o.Text = Describe(2)
	_, o.Log, o.Bad = LoadModule([]byte("bad"))
	_, _, o.Module = LoadModule([]byte("good"))
	o.Shared = []int{AllowShared(16, 200<<10), AllowShared(16, 300<<10)}
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		panic(err)
	}
}

// child opens a driver in a process of its own.
func child(t *testing.T, ctx context.Context, path string, env ...string) (o opening, err error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(append(os.Environ(), childEnv+"="+path), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return o, err
	}
	if err := json.Unmarshal(out.Bytes(), &o); err != nil {
		t.Fatalf("%v in %q, standard error %q", err, &out, &errs)
	}
	return o, nil
}

func openIn(t *testing.T, path string, env ...string) opening {
	t.Helper()
	o, err := child(t, t.Context(), path, env...)
	if err != nil {
		t.Fatal(err)
	}
	if o.Before != 100 {
		t.Errorf("before Open a driver function returns %d, want 100", o.Before)
	}
	if o.Again != o.Error {
		t.Errorf("Open returned %q, and %q when called again", o.Error, o.Again)
	}
	if !strings.Contains(o.Other, "has been opened already") {
		t.Errorf("a second driver is opened: %q", o.Other)
	}
	return o
}

func TestOpenAWholeDriver(t *testing.T) {
	lib := fakedriver.Build(t, fakedriver.Options{Devices: []fakedriver.Device{fakedriver.H200}})
	o := openIn(t, lib)
	if o.Error != "" || o.State.Library != lib || o.State.Version != 12080 || o.State.LoadError != "" || o.State.Emulated {
		t.Errorf("%+v, want it opened, version 12080", o)
	}
	if o.HostCode != 0 || o.Text != "out of memory" || o.Module != 0 {
		t.Errorf("calls: HostAlloc %d, text of code 2 %q, module %d; want 0, out of memory, 0", o.HostCode, o.Text, o.Module)
	}
	if o.Bad != 218 || o.Log != "ptxas: line 7: unknown opcode" {
		t.Errorf("a bad module: code %d, log %q", o.Bad, o.Log)
	}
	if !slices.Equal(o.Shared, []int{0, 1}) {
		t.Errorf("AllowShared: %v, want [0 1]", o.Shared)
	}
	// What the fake lacks is named, and does not stop anybody.
	for _, name := range []string{"cuGetErrorName", "cuTexRefSetFlags", "cuTexRefSetAddress2D_v3"} {
		if !slices.Contains(o.State.Missing, name) {
			t.Errorf("%s is missing in the driver but not in %v", name, o.State.Missing)
		}
	}
	if slices.Contains(o.State.Missing, "cuMemAlloc_v2") || o.Name != "" {
		t.Errorf("missing %v, name %q of an absent cuGetErrorName", o.State.Missing, o.Name)
	}
}

// TestSearchPath: without a path the linker's own search finds the library.
func TestSearchPath(t *testing.T) {
	lib := fakedriver.Build(t, fakedriver.Options{Emulated: true, Version: 11040})
	o := openIn(t, "", "LD_LIBRARY_PATH="+filepath.Dir(lib))
	if o.Error != "" || o.State.Library != "libcuda.so.1" || !o.State.Emulated || o.State.Version != 11040 {
		t.Errorf("%+v, want libcuda.so.1 opened, emulated, version 11040", o)
	}
}

func TestOpenFails(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		code       int
		op         string
		want       string
	}{
		{"no such file", "/nowhere/libcuda.so.1", NoLibrary, "open", "/nowhere/libcuda.so.1: cannot open shared object file"},
		{"not a library", text, NoLibrary, "open", "text.so: file too short"},
		{"without cuInit", fakedriver.Build(t, fakedriver.Options{Omit: []string{"cuInit"}}), Incomplete, "open", "lacks cuInit"},
		{"without cuMemAlloc_v2", fakedriver.Build(t, fakedriver.Options{Omit: []string{"cuMemAlloc_v2", "cuDriverGetVersion"}}), Incomplete, "open", "lacks cuDriverGetVersion, cuMemAlloc_v2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := openIn(t, c.path)
			if o.Code != c.code || o.Op != c.op || !strings.Contains(o.Error, c.want) {
				t.Errorf("%s, code %d: %q, want %s, %d and %q", o.Op, o.Code, o.Error, c.op, c.code, c.want)
			}
			if o.HostCode != 100 {
				t.Errorf("after it a driver function returns %d, want 100", o.HostCode)
			}
		})
	}
}

func TestInitFails(t *testing.T) {
	lib := fakedriver.Build(t, fakedriver.Options{})
	for _, code := range []int{2, 34, 46, 100, 214, 222, 302, 303, 304, 802, 803, 804, 999} {
		o := openIn(t, lib, fmt.Sprintf("%s=%d", fakedriver.InitEnv, code))
		if o.Op != "cuInit" || o.Code != code || o.HostCode != 100 {
			t.Errorf("cuInit returns %d: Open says %s %d, and a function then %d; want cuInit %d, 100", code, o.Op, o.Code, o.HostCode, code)
		}
	}
}

// TestInitHangs: it does, so whoever must not hang asks a child and ends it.
func TestInitHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if o, err := child(t, ctx, fakedriver.Build(t, fakedriver.Options{Hang: true})); err == nil || ctx.Err() == nil {
		t.Errorf("a hanging cuInit has returned: %+v, %v", o, err)
	}
}

// TestNothingExported: no library that is opened later may meet our cuInit, and the
// driver is not linked.
func TestNothingExported(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("readelf", "--wide", "--dyn-syms", "--dynamic", exe).CombinedOutput()
	if err != nil {
		t.Fatalf("readelf: %v\n%s", err, out)
	}
	seen := false
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name := ""
		if len(fields) > 7 { // a symbol
			name = fields[7]
		}
		seen = seen || strings.HasPrefix(name, "dlopen")
		if strings.HasPrefix(name, "cu") || strings.HasPrefix(name, "dorylus_cuda") || strings.Contains(line, "libcuda") {
			t.Errorf("readelf shows %q", strings.TrimSpace(line))
		}
	}
	if !seen {
		t.Errorf("readelf shows no dlopen, so it shows too little:\n%s", out)
	}
}
