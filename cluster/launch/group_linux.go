package launch

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts a process into a group of its own, and lets the kernel kill it when the
// launcher is gone.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd waits until a child has ended, and leaves it to be waited for.
func awaitEnd(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// killGroup kills what is left of the group of a child that has not been waited for.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
