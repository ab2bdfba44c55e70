package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// A pauser stops one graph server after another for a while, by seed: what it computes
// and all that the others wait for comes late. It is how delays get into a run whose
// servers are processes.
type pauser struct {
	rng            *rand.Rand
	shortest, most time.Duration // of a pause; between two lies as much
	count          int
	err            error
}

func newPauser(seed uint64) *pauser {
	return &pauser{rng: rand.New(rand.NewPCG(seed, 1)), shortest: 30 * time.Millisecond, most: 250 * time.Millisecond}
}

// work stops children of the launcher with this process id until done is closed.
func (p *pauser) work(pid int, done <-chan struct{}) {
	wait := func() (over bool) {
		t := time.NewTimer(p.shortest + time.Duration(p.rng.Int64N(int64(p.most-p.shortest))))
		defer t.Stop()
		select {
		case <-t.C:
			return false
		case <-done:
			return true
		}
	}
	for !wait() && p.err == nil {
		servers, err := graphServers(pid)
		if err != nil {
			p.err = err
			return
		}
		if len(servers) == 0 {
			continue
		}
		victim := servers[p.rng.IntN(len(servers))]
		if syscall.Kill(victim, syscall.SIGSTOP) != nil {
			continue // it has ended
		}
		p.count++
		over := wait()
		// It is the launcher's child, which waits for it: nobody else has its number.
		if err := syscall.Kill(victim, syscall.SIGCONT); err != nil && err != syscall.ESRCH {
			p.err = fmt.Errorf("let process %d go on: %w", victim, err)
		}
		if over {
			return
		}
	}
}

// graphServers are the graph servers among the children of a process, on Linux.
func graphServers(parent int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, fmt.Errorf("no processes are seen in /proc; pauses need Linux (%w)", err)
	}
	var all []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(parent) {
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil || !bytes.Contains(line, []byte("\x00serve\x00graph\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}
