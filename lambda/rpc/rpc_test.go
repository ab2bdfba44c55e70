package rpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"dorylus/engine/testkit"
	"dorylus/lambda/wire"
)

// serve is a server on loopback; it returns its address and what to trust.
func serve(t *testing.T, handler Handler) (addr string, trust *tls.Config) {
	t.Helper()
	cert, text, err := Certificate([]string{"127.0.0.1"}, time.Hour)
	check(t, err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	s := Listen(lis, cert, handler)
	t.Cleanup(func() { check(t, s.Close()) })
	trust, err = Trust(text)
	check(t, err)
	return lis.Addr().String(), trust
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// echo sends back all that comes.
func echo(conn wire.Conn, _ func()) error {
	for {
		m, err := conn.Recv()
		if err != nil {
			return err
		}
		if err := conn.Send(m); err != nil {
			return err
		}
	}
}

func TestMessagesArriveAsTheyWere(t *testing.T) {
	testkit.Leaks(t)
	addr, trust := serve(t, echo)
	conn, hang, err := Dial(t.Context(), []string{"127.0.0.1:1", addr}, trust) // the first does not answer
	check(t, err)
	defer hang()
	for _, m := range []*wire.Message{
		{Stop: &wire.Stop{Why: "no parts"}},
		{Block: &wire.Block{ID: 7, Bufs: []wire.Found{{Buf: 1, Writer: 2}, {Buf: 3, Writer: 4}}}, Parts: [][]byte{{}, bytes.Repeat([]byte{1, 2, 3}, 1<<20)}},
	} {
		check(t, conn.Send(m))
		got, err := conn.Recv()
		check(t, err)
		want, err := m.Append(nil)
		check(t, err)
		have, err := got.Append(nil)
		check(t, err)
		if !bytes.Equal(have, want) {
			t.Errorf("%d bytes came back, %d were sent, or they differ", len(have), len(want))
		}
	}
}

func TestStopEndsTheStream(t *testing.T) {
	testkit.Leaks(t)
	entered := make(chan func(), 1)
	addr, trust := serve(t, func(conn wire.Conn, stop func()) error {
		entered <- stop
		_, err := conn.Recv()
		return err
	})
	conn, hang, err := Dial(t.Context(), []string{addr}, trust)
	check(t, err)
	defer hang()
	(<-entered)()
	if _, err := conn.Recv(); status.Code(err) != codes.Canceled || !strings.Contains(err.Error(), "the graph server has ended the stream") {
		t.Errorf("after stop: %v", err)
	}
}

// What the handler refuses is what the worker hears.
func TestRefusalIsHeardByTheWorker(t *testing.T) {
	testkit.Leaks(t)
	addr, trust := serve(t, func(wire.Conn, func()) error { return errors.New("worker 3 was not sent for: its token is wrong") })
	conn, hang, err := Dial(t.Context(), []string{addr}, trust)
	check(t, err)
	defer hang()
	if _, err := conn.Recv(); err == nil || !strings.Contains(err.Error(), "its token is wrong") {
		t.Errorf("refused: %v", err)
	}
}

func TestCertificates(t *testing.T) {
	testkit.Leaks(t)
	addr, _ := serve(t, echo)
	_, other, err := Certificate([]string{"127.0.0.1"}, time.Hour)
	check(t, err)
	_, expired, err := Certificate([]string{"127.0.0.1"}, -time.Minute)
	check(t, err)
	for name, text := range map[string]string{"another run's": other, "expired": expired} {
		trust, err := Trust(text)
		check(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, _, err = Dial(ctx, []string{addr}, trust)
		cancel()
		if err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s certificate: %v", name, err)
		}
	}
	if _, err := Trust("no certificate"); err == nil {
		t.Error("text that is no certificate was trusted")
	}
	if _, _, err := Dial(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("no address: %v", err)
	}
	// One that is valid, for another host.
	cert, text, err := Certificate([]string{"graph.example"}, time.Hour)
	check(t, err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	s := Listen(lis, cert, echo)
	defer s.Close()
	trust, err := Trust(text)
	check(t, err)
	if _, _, err := Dial(t.Context(), []string{lis.Addr().String()}, trust); err == nil {
		t.Error("a certificate of another host was accepted")
	}
}

// raw sends bytes as they are, under the codec's name.
type raw struct{ encoding.CodecV2 }

func (raw) Name() string { return codecName }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

// Bytes that are no message end the stream with what is wrong, and nothing else.
func TestMalformedMessage(t *testing.T) {
	testkit.Leaks(t)
	heard := make(chan error, 1)
	addr, trust := serve(t, func(conn wire.Conn, _ func()) error {
		_, err := conn.Recv()
		heard <- err
		return err
	})
	cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(trust)),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	check(t, err)
	defer cc.Close()
	s, err := cc.NewStream(t.Context(), &desc.Streams[0], method)
	check(t, err)
	check(t, s.SendMsg([]byte{9, 0, 0, 0, 'n', 'o'}))
	if err := <-heard; err == nil || !strings.Contains(err.Error(), "it says 9 bytes, 2 are left") {
		t.Errorf("the server heard %v", err)
	}
	var in []byte
	if err := s.RecvMsg(&in); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the sender heard %v", err)
	}
}
