//go:build !linux

package local

import (
	"os"
	"os/exec"
)

const canFreeze = false

// ownGroup does nothing: process groups are used on Linux only.
func ownGroup(*exec.Cmd) {}

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // an error says that it has ended
	}
}

func freezeGroup(int) {}
func thawGroup(int)   {}
