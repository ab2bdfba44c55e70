package local

import (
	"os/exec"
	"syscall"
)

const canFreeze = true

// ownGroup makes cmd the leader of a process group that dies with this program.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// The errors of these three say that the group has ended, which its wait reports.
func killGroup(pid int)   { _ = syscall.Kill(-pid, syscall.SIGKILL) }
func freezeGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGSTOP) }
func thawGroup(pid int)   { _ = syscall.Kill(-pid, syscall.SIGCONT) }
