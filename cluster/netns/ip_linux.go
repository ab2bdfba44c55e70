package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// command runs a program of iproute2.
func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return text, nil
}

// commands runs several, each a line of words, up to the first that fails.
func commands(name string, lines ...string) error {
	for _, l := range lines {
		if _, err := command(name, strings.Fields(l)...); err != nil {
			return err
		}
	}
	return nil
}

// Missing is what this machine lacks for Open; nil: nothing.
func Missing() error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("namespaces need root"))
	}
	for _, name := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(name); err != nil {
			errs = append(errs, fmt.Errorf("%w: install iproute2", err))
		}
	}
	return errors.Join(errs...)
}

// inside runs f on a thread in a namespace. Sockets that f opens stay in it.
func inside(namespace string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and if it cannot come back the thread ends with this goroutine
		back, err := enter("/proc/thread-self/ns/net", "/run/netns/"+namespace)
		if err != nil {
			done <- fmt.Errorf("enter namespace %s: %w", namespace, err)
			return
		}
		err = f()
		if e := back(); e != nil {
			done <- errors.Join(err, fmt.Errorf("leave namespace %s: %w", namespace, e))
			return
		}
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

// enter moves this thread from one namespace to another, and back.
func enter(from, to string) (back func() error, err error) {
	old, err := unix.Open(from, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(to, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, unix.Close(old))
	}
	if err := errors.Join(unix.Setns(fd, unix.CLONE_NEWNET), unix.Close(fd)); err != nil {
		return nil, errors.Join(err, unix.Close(old))
	}
	return func() error { return errors.Join(unix.Setns(old, unix.CLONE_NEWNET), unix.Close(old)) }, nil
}

// sweep removes namespaces that processes have left which are no more.
func sweep() error {
	list, err := command("ip", "netns", "list")
	if err != nil {
		return err
	}
	for l := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(l), " ")
		rest, ours := strings.CutPrefix(name, prefix)
		pid, _, ok := strings.Cut(rest, "-")
		n, err := strconv.Atoi(pid)
		if !ours || !ok || err != nil || syscall.Kill(n, 0) != syscall.ESRCH {
			continue
		}
		if err := end(name); err != nil {
			return err
		}
	}
	return nil
}

// pids are the processes in a namespace.
func pids(namespace string) ([]int, error) {
	text, err := command("ip", "netns", "pids", namespace)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, w := range strings.Fields(text) {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, fmt.Errorf("ip netns pids %s: %w", namespace, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// end removes a namespace and what runs in it.
func end(namespace string) error {
	running, err := pids(namespace)
	for _, pid := range running {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	_, del := command("ip", "netns", "del", namespace)
	return errors.Join(err, del)
}
