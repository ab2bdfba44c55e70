package inproc

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/engine"
	"dorylus/engine/testkit"
	"dorylus/engine/testkit/opaque"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func host(t *testing.T) kernels.Device {
	t.Helper()
	d, err := ref.Open()
	check(t, err)
	return d
}

// pair is an exchange between two opaque devices, which must hold nothing in the end.
func pair(t *testing.T) (*Exchange, []*opaque.Device) {
	t.Helper()
	testkit.Leaks(t)
	devs := []*opaque.Device{opaque.New(host(t)), opaque.New(host(t))}
	x := NewExchange([]kernels.Device{devs[0], devs[1]})
	t.Cleanup(func() {
		x.Close()
		for rank, d := range devs {
			if err := d.Close(); err != nil {
				t.Errorf("device %d: %v", rank, err)
			}
		}
	})
	return x, devs
}

// ferry sends rows from 0 to 1 by a matrix of device 0.
func ferry(t *testing.T, x *Exchange, epoch int, rows ...float32) error {
	t.Helper()
	p := x.Port(0)
	m, err := p.Room(len(rows)/2, 2)
	check(t, err)
	defer p.Free(m)
	s, err := x.devices[0].NewStream()
	check(t, err)
	defer s.Close()
	s.Put(m, rows)
	check(t, s.Wait())
	return p.Send(t.Context(), &engine.RowMsg{From: 0, To: 1, Epoch: epoch, Cols: 2, Mat: m})
}

// taken is what the matrix of a message holds; it is given back.
func taken(t *testing.T, x *Exchange, m *engine.RowMsg) []float32 {
	t.Helper()
	s, err := x.devices[1].NewStream()
	check(t, err)
	defer s.Close()
	got := make([]float32, m.Mat.Rows*m.Mat.Cols)
	s.Get(got, m.Mat)
	check(t, s.Wait())
	x.Port(1).Free(m.Mat)
	return got
}

// Rows go from device to device, in messages of their own although the sender's matrix is
// used again, and past the host.
func TestRowsGoFromDeviceToDevice(t *testing.T) {
	x, devs := pair(t)
	if !x.Port(0).Ferries(1) || x.Port(0).Ferries(0) || x.Port(0).Ferries(2) {
		t.Error("0 ferries to 1 and to nobody else")
	}
	want := [][]float32{{1, 2, 3, 4}, {5, 6}, {7, 8, 9, 10}}
	for epoch, rows := range want {
		check(t, ferry(t, x, epoch, rows...))
	}
	for range want {
		m, err := x.Port(1).Recv(t.Context())
		check(t, err)
		if got := taken(t, x, m); !slices.Equal(got, want[m.Epoch]) {
			t.Errorf("epoch %d has brought %v, want %v", m.Epoch, got, want[m.Epoch])
		}
	}
	if got := devs[1].Moved(); got["peer"] != 40 || got["put"] != 0 {
		t.Errorf("moved to device 1: %v, want 40 bytes of peers and none of the host", got)
	}
	if s := x.Port(0).Sent(); s != (Sent{Values: 40, Peer: 40, Msgs: 3}) {
		t.Errorf("sent %+v", s)
	}
}

// A run that has found its pace allocates no more.
func TestRoomIsUsedAgain(t *testing.T) {
	x, devs := pair(t)
	var peaks [2]int64
	for epoch := range 20 {
		check(t, ferry(t, x, epoch, make([]float32, 2*(1+epoch%3))...))
		m, err := x.Port(1).Recv(t.Context())
		check(t, err)
		taken(t, x, m)
		for rank, d := range devs {
			_, peak := d.Memory()
			if epoch == 4 {
				peaks[rank] = peak
			}
			if epoch > 4 && peak != peaks[rank] {
				t.Fatalf("epoch %d: device %d has held %d bytes, %d before", epoch, rank, peak, peaks[rank])
			}
		}
	}
	m, err := x.Port(0).Room(1, 1)
	check(t, err)
	x.Port(0).Free(m)
	defer func() {
		if e, ok := recover().(*kernels.ShapeError); !ok || e.Op != "Free" {
			t.Errorf("freed twice: %v", e)
		}
	}()
	x.Port(0).Free(m)
}

func TestDevicesThatDoNotReach(t *testing.T) {
	x, devs := pair(t)
	devs[1].Apart()
	if x.Port(0).Ferries(1) {
		t.Error("0 ferries to a device that reaches none")
	}
	if err := ferry(t, x, 0, 1, 2); err == nil || !strings.Contains(err.Error(), "does not reach") {
		t.Errorf("%v", err)
	}
	rows := []float32{3, 4}
	check(t, x.Port(0).Send(t.Context(), &engine.RowMsg{From: 0, To: 1, Cols: 2, Data: rows}))
	m, err := x.Port(1).Recv(t.Context())
	check(t, err)
	if !slices.Equal(m.Data, rows) || m.Mat != nil {
		t.Errorf("got %+v", m)
	}
	if s := x.Port(0).Sent(); s != (Sent{Values: 8, Msgs: 1}) {
		t.Errorf("sent %+v", s)
	}
}

// More than the window waits, until the receiver takes something, or somebody fails.
func TestTheWindowBounds(t *testing.T) {
	x, _ := pair(t)
	big := &engine.RowMsg{From: 0, To: 1, Cols: 1, Data: make([]float32, window/4)}
	check(t, x.Port(0).Send(t.Context(), big))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := x.Port(0).Send(ctx, big); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second window is sent: %v", err)
	}
	check(t, x.Port(0).Send(t.Context(), &engine.RowMsg{From: 0, To: 1, Finished: true})) // a note always may
	var wg sync.WaitGroup
	var sent error
	wg.Go(func() { sent = x.Port(0).Send(t.Context(), big) })
	for range 3 {
		_, err := x.Port(1).Recv(t.Context())
		check(t, err)
	}
	wg.Wait()
	check(t, sent)
	check(t, x.Port(0).Send(t.Context(), big))
	broken := errors.New("gpu:1: lost")
	wg.Go(func() { sent = x.Port(0).Send(t.Context(), big) })
	x.Fail(broken)
	wg.Wait()
	_, err := x.Port(0).Recv(t.Context())
	if !errors.Is(sent, broken) || !errors.Is(err, broken) {
		t.Errorf("send ends by %v, receive by %v", sent, err)
	}
}

// What is sent to one that has left is dropped, its memory not lost.
func TestAPartitionLeaves(t *testing.T) {
	x, _ := pair(t)
	check(t, ferry(t, x, 0, 1, 2))
	x.Port(1).Leave()
	check(t, ferry(t, x, 1, 1, 2))
	if n := len(x.rooms[1].out); n > 0 {
		t.Errorf("%d matrices are still out", n)
	}
}
