// Package launch starts the servers of a run and stays with them: on this machine as
// processes, on others by ssh, and for Kubernetes as a manifest. It streams what graph
// server 0, the leader, says and prefixes what the others say; passes signals on; and
// when a server is lost ends the others, says who it was, and starts the whole set again
// from its last checkpoint, as often as it may.
//
// No server outlives the launcher: each leads a process group that is killed as a whole
// once the server has ended; the kernel kills the server where the launcher dies; and
// one that was started by ssh ends when its standard input does.
package launch

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dorylus/cluster/member"
)

// Exit codes of servers that mean something to a launcher.
const (
	exitDone        = 0
	exitUsage       = 2
	exitTryAgain    = 75
	exitInterrupted = 130
	exitSSH         = 255 // of ssh: the connection broke, or a signal has ended the command
)

// Server is a process to start: a server of a run, or ssh to one.
type Server struct {
	member.Placed
	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string
	// Files are inherited from descriptor 3 on.
	Files []*os.File
	// Wired servers get signals as words on their standard input (TERM, INT, KILL), and end
	// when it does: those that are not on this machine.
	Wired bool
}

// Name is how people call it: "graph server 2".
func (s *Server) Name() string { return fmt.Sprintf("%s %d", s.Role.Words(), s.Rank) }

// leads says whether this server speaks for the run.
func (s *Server) leads() bool { return s.Role == member.Graph && s.Rank == 0 }

// Options of Run.
type Options struct {
	// Err gets what the leader writes on standard error as it is, and lines of the others
	// behind [graph 2].
	Err io.Writer
	// Signal is what servers are sent when ctx ends; nil: SIGTERM.
	Signal func() syscall.Signal
	// StopGrace is how long servers may take to end after a signal, 0: two minutes;
	// LossGrace how long after one of them was lost, 0: 20 seconds; IdleGrace how long
	// parameter servers may take when there is no graph server any more, 0: 5 seconds. Then
	// they are killed.
	StopGrace, LossGrace, IdleGrace time.Duration
}

func (o Options) withDefaults() Options {
	if o.Signal == nil {
		o.Signal = func() syscall.Signal { return syscall.SIGTERM }
	}
	if o.StopGrace == 0 {
		o.StopGrace = 2 * time.Minute
	}
	if o.LossGrace == 0 {
		o.LossGrace = 20 * time.Second
	}
	if o.IdleGrace == 0 {
		o.IdleGrace = 5 * time.Second
	}
	return o
}

// Exit is how a server ended.
type Exit struct {
	Server *Server
	Code   int            // of a process that has exited by itself; -1 if killed
	Signal syscall.Signal // that killed it; 0: none
	// Words are the last error messages that it wrote.
	Words []string
	// Told says that the launcher had asked or forced it to end.
	Told bool
	err  error // it could not be started or waited for
}

// How says it in words: "ended with exit code 1".
func (e *Exit) How() string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.Signal != 0:
		return fmt.Sprintf("was killed by signal %d (%v)", int(e.Signal), e.Signal)
	case e.cutOff():
		return fmt.Sprintf("was killed or cannot be reached (exit code %d of %s)", e.Code, filepath.Base(e.Server.Path))
	}
	return fmt.Sprintf("ended with exit code %d", e.Code)
}

// String is the server, how it ended, and its last words.
func (e *Exit) String() string {
	s := fmt.Sprintf("%s at %s %s", e.Server.Name(), e.Server.Address, e.How())
	if len(e.Words) > 0 {
		s += ": " + strings.Join(e.Words, "; ")
	}
	return s
}

// lost says that the end of this server was not the work of its program's own judgement,
// or that this judgement is to try again.
func (e *Exit) lost() bool {
	return e.err == nil && (e.Signal != 0 || e.Code == exitTryAgain || e.cutOff())
}

// cutOff says that it ran on another machine, from which no exit code has come.
func (e *Exit) cutOff() bool { return e.Server.Wired && e.Code == exitSSH }

// Outcome is how a set of servers ended.
type Outcome struct {
	Exits []*Exit // in the order in which they ended
	// Output is what the leader wrote on standard output.
	Output []byte
}

// Leader is how graph server 0 ended.
func (o *Outcome) Leader() *Exit {
	for _, e := range o.Exits {
		if e.Server.leads() {
			return e
		}
	}
	return nil
}

// Cause is the server that ended badly without having been told to; nil if all went well.
// One that was killed counts before one that failed, and that before those which gave up
// because they missed it: ends that follow each other closely may be seen in any order.
func (o *Outcome) Cause() *Exit {
	var cause *Exit
	for _, e := range o.Exits {
		if !e.Told && e.weight() > 0 && (cause == nil || e.weight() > cause.weight()) {
			cause = e
		}
	}
	return cause
}

// weight is how likely this end is the cause of the others; 0: it is a good one.
func (e *Exit) weight() int {
	switch {
	case e.err != nil || e.Signal != 0 || e.cutOff():
		return 3
	case e.Code == exitDone:
		return 0
	case e.Code == exitTryAgain:
		return 1
	}
	return 2
}

// Lost says whether the set may be started again: a server was lost, none of them was
// called wrongly, and the one that ended first did not give up for a reason of its own.
func (o *Outcome) Lost() bool {
	c := o.Cause()
	if c == nil || !c.lost() {
		return false
	}
	for _, e := range o.Exits {
		if e.Code == exitUsage || e.Code == exitInterrupted {
			return false
		}
	}
	return true
}
