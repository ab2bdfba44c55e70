//go:build !linux

package local

import (
	"fmt"
	"os/exec"
)

// confiner asks Go workers to keep to their share; nothing enforces it.
type confiner struct{}

type limits struct{ text string }

func newConfiner(asked string) (*confiner, error) {
	if asked != "" && asked != "none" {
		return nil, fmt.Errorf("use cgroup %s: there are cgroups on Linux only", asked)
	}
	return &confiner{}, nil
}

func (*confiner) prepare(cmd *exec.Cmd, _ string, memoryMB int) *limits {
	cmd.Env = append(cmd.Env, softLimits(memoryMB)...)
	return &limits{text: softText(memoryMB, "", "limits are enforced on Linux only")}
}

func (*confiner) close()       {}
func (*limits) started(int)    {}
func (*limits) peakMB(int) int { return 0 }
func (*limits) close()         {}
