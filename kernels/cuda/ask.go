package cuda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Ask runs cmd, a process that prints Probe's report as JSON, and returns the report.
// A driver that hangs beyond limit, or ends the process, becomes the report's problem.
// cmd must not have been started, and its outputs not been set.
func Ask(cmd *exec.Cmd, limit time.Duration) Report {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return trouble(fmt.Sprintf("the process that asks the driver did not start: %v", err), "look at this program's file and at the limits on processes")
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return read(err, out.Bytes(), errs.String())
	case <-timer.C:
		// A process inside a hanging driver may not even die: it is not waited for.
		_ = cmd.Process.Kill()
		return trouble(fmt.Sprintf("the driver did not answer within %v", limit),
			"see whether nvidia-smi answers and what the kernel's log (dmesg) says; restart the driver, or the machine")
	}
}

// read turns what a process left behind into a report.
func read(err error, out []byte, errs string) Report {
	var r Report
	jsonErr := json.Unmarshal(out, &r)
	if err == nil && jsonErr == nil {
		return r
	}
	last := strings.TrimSpace(errs)
	if i := strings.IndexByte(last, '\n'); i >= 0 {
		last = last[:i]
	}
	if last != "" {
		last = " (" + last + ")"
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return trouble(fmt.Sprintf("the driver ended the process that asked it: %v%s", err, last), "see what the kernel's log (dmesg) says, and update NVIDIA's driver")
	}
	return trouble(fmt.Sprintf("the process that asks the driver gave no report: %v%s", errors.Join(err, jsonErr), last), "report it")
}

func trouble(reason, next string) Report {
	return Report{Built: Built, Devices: []GPU{}, Problem: &Problem{Reason: reason, Next: next}}
}
