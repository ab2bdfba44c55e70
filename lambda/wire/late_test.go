package wire

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLateIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		if Late(b, 0) != Conn(b) {
			t.Error("no latency is not the stream itself")
		}
		const latency = 70 * time.Millisecond
		l := Late(b, latency)
		start := time.Now()
		for _, m := range samples() {
			if err := a.Send(m); err != nil {
				t.Fatal(err)
			}
		}
		a.Close()
		for i, want := range samples() {
			if got, err := l.Recv(); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("message %d: %+v, %v, want %+v", i, got, err, want)
			}
		}
		for range 3 {
			if m, err := l.Recv(); m != nil || err != io.EOF {
				t.Errorf("then %+v, %v, want EOF however often", m, err)
			}
		}
		if took := time.Since(start); took != latency {
			t.Errorf("all of it took %v, want %v", took, latency)
		}
	})
}

// broken is a stream that breaks behind so many messages.
type broken struct {
	Conn
	left int
}

var errBroken = errors.New("the line is dead")

func (b *broken) Recv() (*Message, error) {
	if b.left == 0 {
		return nil, errBroken
	}
	b.left--
	return &Message{Stop: &Stop{}}, nil
}

func TestLateEndsAsTheStreamDoes(t *testing.T) {
	l := Late(&broken{left: 1}, time.Nanosecond)
	if m, err := l.Recv(); err != nil || m.Stop == nil {
		t.Fatalf("%+v, %v, want the message", m, err)
	}
	for range 2 {
		if m, err := l.Recv(); m != nil || err != errBroken {
			t.Errorf("%+v, %v, want %v", m, err, errBroken)
		}
	}
}

// The bubble fails the test if the carrier waits for a receiver that has left.
func TestLateWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const more = 5
		b := &broken{left: onTheWay + more}
		l := Late(b, time.Second)
		synctest.Wait()
		if b.left != more-1 {
			t.Errorf("%d messages are left, want %d", b.left, more-1)
		}
		for i := range onTheWay {
			if m, err := l.Recv(); err != nil || m.Stop == nil {
				t.Fatalf("message %d: %+v, %v", i, m, err)
			}
		}
		if _, err := l.Recv(); err == nil || !strings.Contains(err.Error(), "4096 messages wait") {
			t.Errorf("then %v, want what was wrong", err)
		}
	})
}
