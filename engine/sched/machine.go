// Package sched decides which task may run now. It is a pure state machine: no
// goroutine, clock, lock or I/O; the same inputs give the same tasks.
package sched
