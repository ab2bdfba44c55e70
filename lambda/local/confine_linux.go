package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// confiner holds workers to their memory and processors: by a cgroup of their
// own where this program may make some, else by what a Go program does itself and
// a limit on its data.
type confiner struct {
	base string // folder of our cgroups; "": none
	why  string // there is none
}

// limits are what holds one worker.
type limits struct {
	text   string
	group  string // the worker's cgroup folder; "": none
	folder *os.File
	memory int // MB
}

// prepare makes cmd start within its limits.
func (c *confiner) prepare(cmd *exec.Cmd, name string, memoryMB int) *limits {
	l := &limits{memory: memoryMB}
	why := c.why
	if c.base != "" {
		err := l.makeGroup(c.base, name, cmd)
		if err == nil {
			return l
		}
		why = err.Error()
	}
	cmd.Env = append(cmd.Env, softLimits(memoryMB)...)
	l.text = softText(memoryMB, "RLIMIT_DATA", why)
	return l
}

// dataSlack is how far RLIMIT_DATA lies above the memory limit: Go asks for
// 64 MiB of heap at a time and uses it little by little.
const dataSlack = 64 << 20

// started lowers RLIMIT_DATA once the worker asks for its first call. What it has
// mapped until then and not touched stays its own: the limit counts mappings, and
// a runtime reserves more than it uses.
func (l *limits) started(pid int) {
	if l.group != "" {
		return
	}
	mapped, resident := statusKB(pid, "VmData:"), statusKB(pid, "VmRSS:")
	if mapped == 0 {
		return // it has ended, or there is no /proc
	}
	free := max(0, int64(l.memory)<<20-resident<<10)
	limit := uint64(mapped<<10 + free + dataSlack)
	// An error says that it has ended.
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}, nil)
}

// peakMB is the most memory the worker has used.
func (l *limits) peakMB(pid int) int {
	if l.group != "" {
		if n, err := strconv.ParseInt(readWord(l.group+"/memory.peak"), 10, 64); err == nil {
			return int((n + 1<<20 - 1) >> 20)
		}
	}
	return int((statusKB(pid, "VmHWM:") + 1023) / 1024)
}

// statusKB reads a number of kB from /proc/PID/status; 0 if it is not there.
func statusKB(pid int, field string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n
		}
	}
	return 0
}

// makeGroup makes the worker's cgroup and has cmd start in it.
func (l *limits) makeGroup(base, name string, cmd *exec.Cmd) error {
	group := base + "/" + name
	if err := os.Mkdir(group, 0o755); err != nil {
		return fmt.Errorf("make a cgroup: %w", err)
	}
	quota := max(1000, l.memory*100_000/MBPerCPU)
	err := errors.Join(
		os.WriteFile(group+"/cpu.max", fmt.Appendf(nil, "%d 100000", quota), 0o644),
		os.WriteFile(group+"/memory.max", fmt.Appendf(nil, "%d", l.memory<<20), 0o644),
	)
	if err == nil {
		// Not every kernel has these two; without them a worker swaps, or its helpers
		// outlive it for a moment.
		_ = os.WriteFile(group+"/memory.swap.max", []byte("0"), 0o644)
		_ = os.WriteFile(group+"/memory.oom.group", []byte("1"), 0o644)
		l.folder, err = os.Open(group)
	}
	if err != nil {
		return fmt.Errorf("limit cgroup %s: %w", group, errors.Join(err, os.Remove(group)))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(l.folder.Fd())}
	l.group = group
	l.text = fmt.Sprintf("cgroup %s: cpu.max %.3f, memory.max %d MiB", group, float64(quota)/100_000, l.memory)
	return nil
}

// close removes the cgroup; the worker has ended.
func (l *limits) close() {
	if l.folder == nil {
		return
	}
	_ = l.folder.Close()
	_ = os.Remove(l.group) // a process that left its group may still be dying in it
}
