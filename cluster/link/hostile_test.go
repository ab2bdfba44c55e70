package link

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dorylus/cluster/rpc"
	"dorylus/engine/testkit"
)

// lone is a mesh of rank 0 of 2, whose peer is this test, by hand.
func lone(t *testing.T) (*Mesh[*parcel], func(h hello) (*rpc.ClientStream, error)) {
	t.Helper()
	s, err := rpc.Listen("127.0.0.1:0", rpc.Plaintext(), rpc.Options{})
	check(t, err)
	who := rpc.Who{Role: rpc.Graph, Rank: 1}
	nobody, err := rpc.Dial("127.0.0.1:1", rpc.Plaintext(), who, rpc.Options{})
	check(t, err)
	m, err := New(Config[*parcel]{Service: "test.Parcels", Decoder: parcels{}, Base: Base{Rank: 0, Size: 2,
		Peers: map[int]Peer{1: {Who: who, Addr: "10.0.0.9:7", Conn: nobody}}, Job: Job{ID: "run"}, LeaveTimeout: 300 * time.Millisecond}})
	check(t, err)
	s.Handle(m.Service())
	s.Serve()
	cc, err := rpc.Dial(s.Addr(), rpc.Plaintext(), rpc.Who{Role: rpc.Graph}, rpc.Options{})
	check(t, err)
	t.Cleanup(func() {
		cc.Close()
		nobody.Close()
		check(t, m.Leave(t.Context(), "the test ends"))
		check(t, s.Close())
	})
	return m, func(h hello) (*rpc.ClientStream, error) {
		stream, err := rpc.Open(t.Context(), cc, "/test.Parcels/"+method)
		if err != nil {
			return nil, err
		}
		msg, err := note(kindHello, &h)
		check(t, err)
		if err := stream.Send(msg); err != nil {
			return nil, err
		}
		answer, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		return stream, readNote(answer, kindWelcome, &welcome{})
	}
}

func good() hello {
	return hello{Version: version, Job: "run", From: 1, To: 0, Size: 2, Born: 5, Window: 1000}
}

// Strangers are turned away, and the run goes on.
func TestStrangersAreTurnedAway(t *testing.T) {
	testkit.Leaks(t)
	m, call := lone(t)
	if _, err := call(good()); err != nil {
		t.Fatal(err)
	}
	for says, spoil := range map[string]func(h *hello){
		"it speaks version 9, here is version 1": func(h *hello) { h.Version = 9 },
		"it is of a run of 3 graph servers":      func(h *hello) { h.Size = 3 },
		"it wants graph server 1, here is":       func(h *hello) { h.To = 1 },
		"says that it is graph server 7":         func(h *hello) { h.From = 7 },
		"says that it is graph server -1":        func(h *hello) { h.From = -1 },
		"says that it is graph server 0":         func(h *hello) { h.From = 0 },
		"a window of 0 bytes":                    func(h *hello) { h.Window = 0 },
		"a window of 1099511627776 bytes":        func(h *hello) { h.Window = 1 << 40 },
		`job "x", here "run"`:                    func(h *hello) { h.Job = "x" },
	} {
		h := good()
		spoil(&h)
		if _, err := call(h); err == nil || rpc.Passing(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want a refusal with %q", h, err, says)
		}
	}
	h := good()
	h.Born = 6
	if _, err := call(h); err == nil || !strings.Contains(err.Error(), "was started again") {
		t.Errorf("another process of the same rank: %v", err)
	}
	if err := m.Err(); err != nil {
		t.Errorf("the run has ended: %v", err)
	}
}

// Before a peer has joined, one that is of this run and does not fit ends it: it cannot
// come together. One of another run is a stranger.
func TestAWrongPeerEndsTheJoining(t *testing.T) {
	testkit.Leaks(t)
	m, call := lone(t)
	h := good()
	h.Job, h.Settings = "old run", map[string]string{"a": "b"}
	if _, err := call(h); err == nil {
		t.Error("another run was let in")
	}
	if err := m.Err(); err != nil {
		t.Errorf("a stranger has ended the run: %v", err)
	}
	if s := m.States()[0]; s.Ready || !strings.Contains(s.State, `has called, and was refused: graph server 1 has other settings than graph server 0: job "old run", here "run"`) {
		t.Errorf("the table says %+v", s)
	}
	h.Job = "run"
	if _, err := call(h); err == nil {
		t.Error("other settings were let in")
	}
	<-m.Down()
	wantPeer(t, m.Err(), 1, `a is "b", here not set`)
}

// A peer that has joined and sends what does not fit ends the run, and is named.
func TestMisfitsAreNamed(t *testing.T) {
	testkit.Leaks(t)
	data := func(seq uint64, at, count, n, size int) *rpc.Message {
		var all []*rpc.Message
		(&parcel{n, count, size}).Encode(func(m *rpc.Message) bool { all = append(all, m); return true })
		return place{seq, at, count}.wrap(all[0])
	}
	for says, send := range map[string][]*rpc.Message{
		"does not say where it belongs":                       {{Kind: kindData}},
		"message 2 of 2 of item 1: there is no such one":      {data(1, 2, 2, 1, 1)},
		"item 1048577, item 1 is not there yet":               {data(1+maxAhead, 0, 1, 1, 1)},
		"message 1 of item 1 before those that it follows":    {data(1, 1, 2, 1, 1)},
		"message 2 of item 1 before those that it follows":    {data(1, 0, 3, 1, 1), data(1, 2, 3, 1, 1)},
		"item 1 in 3 messages, before in 2":                   {data(1, 0, 2, 1, 1), data(1, 1, 3, 1, 1)},
		"item 1: no parcel":                                   {place{1, 0, 1}.wrap(&rpc.Message{})},
		"message 1 of item 1: chunk 1 of parcel 2":            {data(1, 0, 2, 1, 1), data(1, 1, 2, 2, 1)},
		"while 1 items of 664 bytes are not taken: more than": {data(1, 0, 1, 1, 600), data(2, 0, 1, 2, 600)},
		"a message of kind 9":                                 {{Kind: 9}},
		"a message of kind 1":                                 {{Kind: kindHello}},
	} {
		t.Run(strings.ReplaceAll(says, " ", "-"), func(t *testing.T) {
			m, call := lone(t)
			s, err := call(good())
			check(t, err)
			for _, msg := range send {
				check(t, s.Send(msg))
			}
			if _, err := s.Recv(); err == nil || rpc.Passing(err) || !strings.Contains(err.Error(), says) {
				t.Errorf("it hears %v, want %q", err, says)
			}
			<-m.Down()
			if err := m.Err(); err == nil || !strings.HasPrefix(err.Error(), "graph server 1 at 10.0.0.9:7: it sends what does not fit: ") || !strings.Contains(err.Error(), says) {
				t.Errorf("the run ends by %v, want %q", err, says)
			}
		})
	}
}

// A newer stream of the same sender takes over from one that seems to live still.
func TestNewerStreamTakesOver(t *testing.T) {
	testkit.Leaks(t)
	m, call := lone(t)
	old, err := call(good())
	check(t, err)
	young, err := call(good())
	check(t, err)
	if _, err := old.Recv(); err == nil || !rpc.Passing(err) || !strings.Contains(err.Error(), "taken over") {
		t.Errorf("the old one hears %v", err)
	}
	(&parcel{1, 1, 10}).Encode(func(msg *rpc.Message) bool {
		check(t, young.Send(place{1, 0, 1}.wrap(msg)))
		return true
	})
	if from, p, err := m.Recv(t.Context()); err != nil || from != 1 || p.n != 1 {
		t.Errorf("got %v from %d, %v", p, from, err)
	}
	a, err := young.Recv()
	check(t, err)
	if read, err := readAck(a); err != nil || a.Kind != kindAck || read != 1 {
		t.Errorf("acknowledged with %+v: %d, %v", a, read, err)
	}
}

func FuzzUnwrap(f *testing.F) {
	f.Add([]byte{1, 0, 1, 9})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3})
	f.Fuzz(func(t *testing.T, head []byte) {
		p, m, err := unwrap(&rpc.Message{Kind: kindData, Head: head})
		if err != nil {
			return
		}
		q, again, err := unwrap(p.wrap(m))
		if err != nil || p != q || string(again.Head) != string(m.Head) {
			t.Errorf("%x is %+v %x, again %+v %x, %v", head, p, m.Head, q, again.Head, err)
		}
	})
}

func FuzzHello(f *testing.F) {
	b, err := json.Marshal(good())
	check(f, err)
	f.Add(b)
	f.Fuzz(func(_ *testing.T, head []byte) {
		var h hello
		_ = readNote(&rpc.Message{Kind: kindHello, Head: head}, kindHello, &h)
		_ = differ(Job{h.Job, h.Settings}, Job{ID: "run"})
		_, _ = readAck(&rpc.Message{Head: head})
	})
}
