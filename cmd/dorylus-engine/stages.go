package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"dorylus/engine/prepare"
)

// How often the progress of prepare is shown: on a terminal one line that is drawn again,
// elsewhere a line now and then, the first of which only after plainFirst, so that what
// takes no time says nothing.
const (
	stageRedraw = 100 * time.Millisecond
	plainFirst  = 2 * time.Second
	plainEvery  = 5 * time.Second
)

// stages shows how far reading, building and writing a store are, and how long what
// goes on will take.
type stages struct {
	w       io.Writer
	columns int // of the terminal; 0: it is none
	now     func() time.Time

	begun time.Time
	stage string
	since time.Time // when the stage began
	shown time.Time
	width int // of the line on the screen
}

// stages is a new one on standard error; nil, which shows nothing, if quiet.
func (a *app) stages(quiet bool) *stages {
	if quiet {
		return nil
	}
	return &stages{w: a.err, columns: a.columns, now: time.Now, begun: time.Now()}
}

// counting shows numbers of things; it is nil, as all callbacks are, for a nil s.
func (s *stages) counting() func(stage string, done, total int64) {
	if s == nil {
		return nil
	}
	return func(stage string, done, total int64) { s.show(stage, done, total, "") }
}

// bytes shows files, which are being read or written.
func (s *stages) bytes(verb string) func(file string, done, total int64) {
	if s == nil {
		return nil
	}
	return func(file string, done, total int64) { s.show(verb+" "+file, done, total, " of "+sizeText(total)) }
}

// writing is bytes for several files whose bytes are counted together.
func (s *stages) writing() func(file string, done, total int64) {
	if s == nil {
		return nil
	}
	return func(_ string, done, total int64) { s.show("write", done, total, " of "+sizeText(total)) }
}

// clear removes the line from a terminal.
func (s *stages) clear() {
	if s != nil && s.width > 0 {
		fmt.Fprintf(s.w, "\r%*s\r", s.width, "")
		s.width = 0
	}
}

func (s *stages) show(stage string, done, total int64, of string) {
	now := s.now()
	fresh := stage != s.stage
	if fresh {
		s.stage, s.since = stage, now
	}
	if stage == prepare.Done {
		s.clear()
		return
	}
	switch {
	case s.columns > 0 && !fresh && now.Sub(s.shown) < stageRedraw:
		return
	case s.columns == 0 && (now.Sub(s.begun) < plainFirst || now.Sub(s.shown) < plainEvery):
		return
	}
	s.shown = now
	line := stage
	if total > 0 && done > 0 {
		line += fmt.Sprintf(" %d %%%s", 100*done/total, of)
		if left := now.Sub(s.since).Seconds() * float64(total-done) / float64(done); done < total && now.Sub(s.since) >= time.Second {
			line += fmt.Sprintf(", %.0f s left", math.Ceil(left))
		}
	}
	if s.columns == 0 {
		fmt.Fprintf(s.w, "prepare: %s\n", line)
		return
	}
	if len(line) >= s.columns {
		line = line[:s.columns-1]
	}
	fmt.Fprintf(s.w, "\r%s%s", line, strings.Repeat(" ", max(0, s.width-len(line))))
	s.width = len(line)
}

// sizeText is a number of bytes as people say it.
func sizeText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f kB", math.Ceil(float64(n)/1e3))
}
