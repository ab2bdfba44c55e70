package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// enterEnv has the order that a child process of the tests carries out as a container.
const enterEnv = "DORYLUS_TEST_ENTER"

// An order says what runs in a root folder, as an image's config would have it run.
type order struct {
	Root     string
	ReadOnly bool              // the root, not the volumes
	Volumes  map[string]string // path in the container: folder outside
	Dir      string
	User     string // "uid:gid"; "": root
	Env      []string
	Args     []string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(enterEnv); text != "" {
		fmt.Fprintln(os.Stderr, "enter the image:", enter(text)) // it returns only if it failed
		os.Exit(125)
	}
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// command is a process that carries out an order in a mount namespace of its own. The
// test is skipped where that is not allowed.
func (o order) command(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = []string{enterEnv + "=" + string(text)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// canEnter skips a test that cannot have mounts of its own.
func canEnter(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: running an image's root needs root")
	}
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if err := cmd.Run(); err != nil {
		t.Skipf("SKIPPED: no mount namespace of its own: %v", err)
	}
}

// enter becomes the program of an order.
func enter(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var errs []error
	mount := func(src, dst, kind string, flags uintptr) {
		if err := unix.Mount(src, dst, kind, flags, ""); err != nil {
			errs = append(errs, fmt.Errorf("mount %s at %s: %w", src, dst, err))
		}
	}
	at := func(name string) string { return filepath.Join(o.Root, name) }
	mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE)
	mount(o.Root, o.Root, "", unix.MS_BIND)
	for _, dir := range []string{"proc", "tmp", "dev"} {
		errs = append(errs, os.MkdirAll(at(dir), 0o755))
	}
	mount("/proc", at("proc"), "", unix.MS_BIND|unix.MS_REC)
	mount("tmpfs", at("tmp"), "tmpfs", 0)
	mount("tmpfs", at("dev"), "tmpfs", 0)
	for _, dev := range []string{"null", "zero", "random", "urandom"} {
		errs = append(errs, os.WriteFile(at("dev/"+dev), nil, 0o666))
		mount("/dev/"+dev, at("dev/"+dev), "", unix.MS_BIND)
	}
	for inside, outside := range o.Volumes {
		mount(outside, at(inside), "", unix.MS_BIND)
	}
	if o.ReadOnly {
		mount("", o.Root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := errors.Join(unix.Chroot(o.Root), os.Chdir(o.Dir)); err != nil {
		return err
	}
	if o.User != "" {
		u, g, _ := strings.Cut(o.User, ":")
		uid, err1 := strconv.Atoi(u)
		gid, err2 := strconv.Atoi(g)
		if err := errors.Join(err1, err2, syscall.Setgroups(nil), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
			return err
		}
	}
	return syscall.Exec(o.Args[0], o.Args, o.Env)
}
