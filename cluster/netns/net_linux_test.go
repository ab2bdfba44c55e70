package netns

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// program is the environment variable that asks for the tests that make namespaces, and
// names the program whose servers run in them.
const program = "NETNS_PROGRAM"

// wanted skips tests unless they were asked for and can be run.
func wanted(t *testing.T) string {
	t.Helper()
	path := os.Getenv(program)
	if path == "" {
		t.Skipf("SKIPPED: makes network namespaces; run it as root by make test-netns, which sets %s", program)
	}
	if err := Missing(); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	return path
}

// shaped is the network of the tests: 1 Gbit/s, 5 ms one way, 1 % loss.
var shaped = Shape{Rate: 1e9, Delay: 5 * time.Millisecond, Loss: 0.01}

func open(t *testing.T, hosts int, s Shape, seed uint64) *Net {
	t.Helper()
	n, err := Open(Config{Hosts: hosts, Shape: s, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Log(n.How())
	return n
}

// pair is a connection between two hosts.
func pair(t *testing.T, n *Net, a, b int) (x, y net.Conn) {
	t.Helper()
	var lis net.Listener
	err := n.Inside(b, func() (err error) {
		lis, err = net.Listen("tcp4", n.Hosts()[b].Addr+":0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	err = n.Inside(a, func() (err error) {
		x, err = net.DialTimeout("tcp4", lis.Addr().String(), 10*time.Second)
		return err
	})
	if err == nil {
		y, err = lis.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x, y
}

func echo(t *testing.T, x, y net.Conn, patience time.Duration) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	if err := errors.Join(x.SetDeadline(began.Add(patience)), y.SetDeadline(began.Add(patience))); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	for _, c := range [][2]net.Conn{{x, y}, {y, x}} {
		if _, err := c[0].Write(b[:]); err != nil {
			return 0, err
		}
		if _, err := c[1].Read(b[:]); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func TestHostsAreApartByTheirDelay(t *testing.T) {
	wanted(t)
	n := open(t, 3, Shape{Rate: 1e9, Delay: 5 * time.Millisecond}, 1)
	x, y := pair(t, n, 0, 2)
	best := time.Hour
	for range 20 {
		took, err := echo(t, x, y, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, took)
	}
	t.Logf("round trip: %v", best)
	if best < 10*time.Millisecond || best > 20*time.Millisecond {
		t.Errorf("a round trip takes %v, want 10 ms and a little", best)
	}
}

func TestCutLinksSwallowPackets(t *testing.T) {
	wanted(t)
	n := open(t, 3, Shape{Delay: time.Millisecond}, 1)
	x, y := pair(t, n, 0, 1)
	u, v := pair(t, n, 0, 2)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(n.Cut(0, 1, true))
	if took, err := echo(t, x, y, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a cut link answers in %v, %v; want a time-out", took, err)
	}
	_, err := echo(t, u, v, 10*time.Second)
	must(err)
	must(n.Cut(0, 1, false))
	if err := x.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := y.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err = y.Read(b[:]) // what was lost is sent again
	must(err)
	must(n.Isolate(0, true))
	if _, err := echo(t, u, v, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("an isolated host: %v, want a time-out", err)
	}
}

func TestLinksLosePackets(t *testing.T) {
	wanted(t)
	n := open(t, 2, shaped, 5)
	var to, from net.PacketConn
	listen := func(host int, c *net.PacketConn) {
		t.Helper()
		err := n.Inside(host, func() (err error) {
			*c, err = net.ListenPacket("udp4", n.Hosts()[host].Addr+":0")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*c).Close() })
	}
	listen(0, &from)
	listen(1, &to)
	const packets = 20000
	var got atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		var b [2048]byte
		for {
			if _, _, err := to.ReadFrom(b[:]); err != nil {
				return
			}
			got.Add(1)
		}
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	data := make([]byte, 200)
	for i := range packets {
		if i%10 == 0 {
			<-tick.C
		}
		if _, err := from.WriteTo(data, to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	<-done
	lost := 1 - float64(got.Load())/packets
	t.Logf("%d of %d packets came: %.2f %% lost", got.Load(), packets, 100*lost)
	if lost < 0.006 || lost > 0.02 {
		t.Errorf("%.2f %% lost, want about 1 %%", 100*lost)
	}
}

func TestLinksHaveARate(t *testing.T) {
	wanted(t)
	n := open(t, 2, Shape{Rate: 100e6, Delay: time.Millisecond}, 5)
	x, y := pair(t, n, 0, 1)
	const bytes = 25 << 20
	go func() { _, _ = x.Write(make([]byte, bytes)) }()
	began := time.Now()
	if _, err := io.CopyN(io.Discard, y, bytes); err != nil {
		t.Fatal(err)
	}
	rate := bytes * 8 / time.Since(began).Seconds() / 1e6
	t.Logf("%.0f Mbit/s through a link of 100", rate)
	if rate > 101 || rate < 50 {
		t.Errorf("%.0f Mbit/s through a link of 100 Mbit/s", rate)
	}
}
