package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// newConfiner finds a place for the workers' cgroups: the folder that is asked
// for; or the cgroup of this program or the one above it, which a delegating
// service manager lets us use.
func newConfiner(asked string) (*confiner, error) {
	switch asked {
	case "none":
		return &confiner{why: "cgroups are switched off"}, nil
	case "":
		return findConfiner(cgroupRoot, "/proc/self/cgroup"), nil
	}
	base, err := makeBase(asked)
	if err != nil {
		return nil, fmt.Errorf("use cgroup %s: %w", asked, err)
	}
	return &confiner{base: base}, nil
}

func findConfiner(root, self string) *confiner {
	if !unified(root) {
		return &confiner{why: "no cgroup v2 at " + root}
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return &confiner{why: fmt.Sprintf("read own cgroup: %v", err)}
	}
	var own string
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = filepath.Join(root, rest)
		}
	}
	if own == "" {
		return &confiner{why: "this program is in no cgroup of version 2"}
	}
	var why []string
	for _, parent := range slices.Compact([]string{own, filepath.Dir(own)}) {
		if !strings.HasPrefix(parent, root) {
			continue
		}
		base, err := makeBase(parent)
		if err == nil {
			c := &confiner{base: base}
			if err = c.try(); err == nil {
				return c
			}
			c.close()
		}
		why = append(why, err.Error())
	}
	return &confiner{why: "no cgroup to use: " + strings.Join(why, "; ")}
}

// unified says whether root is a cgroup v2 mount.
func unified(root string) bool {
	var st unix.Statfs_t
	return unix.Statfs(root, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// makeBase makes our folder in a cgroup and hands it the controllers.
func makeBase(parent string) (string, error) {
	enable := []byte("+cpu +memory")
	// It may have them already, or refuse because processes are in it: what counts
	// is what the child gets.
	_ = os.WriteFile(parent+"/cgroup.subtree_control", enable, 0o644)
	base, err := os.MkdirTemp(parent, "dorylus-lambda-")
	if err != nil {
		return "", fmt.Errorf("make a cgroup: %w", err)
	}
	fail := func(err error) (string, error) { return "", errors.Join(err, os.Remove(base)) }
	has := strings.Fields(readWord(base + "/cgroup.controllers"))
	if !slices.Contains(has, "cpu") || !slices.Contains(has, "memory") {
		return fail(fmt.Errorf("%s hands on the controllers [%s], cpu and memory are needed", parent, strings.Join(has, " ")))
	}
	if err := os.WriteFile(base+"/cgroup.subtree_control", enable, 0o644); err != nil {
		return fail(fmt.Errorf("hand on cpu and memory: %w", err))
	}
	return base, nil
}

// try starts a program in a cgroup: that a folder can be made does not yet mean
// that a process may be put there.
func (c *confiner) try() error {
	program, err := exec.LookPath("true")
	if err != nil {
		return nil // nothing to try with
	}
	cmd := exec.Command(program)
	l := c.prepare(cmd, "try", 128)
	defer l.close()
	if l.group == "" {
		return errors.New(l.text)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start a program in %s: %w", l.group, err)
	}
	return nil
}

func (c *confiner) close() {
	if c.base != "" {
		_ = os.Remove(c.base) // empty: every environment removed its own
	}
}

func readWord(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
