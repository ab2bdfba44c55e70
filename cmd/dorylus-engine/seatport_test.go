package main

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"dorylus/cluster/member"
)

// A server that is started again waits for the port of the one before; another one says
// that it is taken.
func TestPortOfTheServerBefore(t *testing.T) {
	before, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	first := &serveFlags{listen: before.Addr().String()}
	if l, err := first.open(t.Context(), member.Membership{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("%v, %v; want that the address is in use", l, err)
	}
	again := &serveFlags{listen: first.listen, because: "graph server 1 was killed"}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if l, err := again.open(short, member.Membership{}); !errors.Is(err, syscall.EADDRINUSE) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, %v; want that the address is in use, at the deadline", l, err)
	}
	closing := time.AfterFunc(300*time.Millisecond, func() { _ = before.Close() })
	defer closing.Stop()
	l, err := again.open(t.Context(), member.Membership{})
	if err != nil {
		t.Fatalf("after the port was free: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
