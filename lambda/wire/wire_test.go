package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
)

// samples has a message of every kind.
func samples() []*Message {
	return []*Message{
		{Hello: &Hello{Version: Version, Token: "t", Worker: 3, Device: "cpu"}},
		{Job: &Job{Steps: 4, Precision: "fp32", Codec: "auto"}},
		{Shard: &Shard{Head: []byte(`{"a":1}`)}, Parts: [][]byte{{1, 2}, {}, {3}}},
		{Shard: &Shard{Head: []byte(`{}`), More: true}},
		{Chunk: &Chunk{N: 1, More: true}, Parts: [][]byte{{4}}},
		{Weight: &Weight{Param: 1, Hash: 1<<63 + 5}, Parts: [][]byte{{9}}},
		{Task: &Task{ID: 7, Interval: 2, Epoch: 3, Walk: 4, Steps: []Step{{Step: 1, Found: []Found{{1, 2}}, Blocks: []int{0, 1}, Ships: []int{3}, Grads: []int{0}, Sums: []int{1, 2}}}, Params: []Weight{{Param: 1, Hash: 2}}}},
		{Block: &Block{ID: 7, Step: 1, Block: 1, Bufs: []Found{{5, 0}}}, Parts: [][]byte{{1}}},
		{Cancel: &Cancel{ID: 7}},
		{Stop: &Stop{Why: "over"}},
		{Result: &Result{ID: 7, Block: 1, Loss: 0.1, Last: true}, Parts: [][]byte{{}}},
		{Fail: &Fail{ID: 7, Text: "x", Lost: true}},
		{Fail: &Fail{ID: 7, Text: "x", Off: true}},
		{Bye: &Bye{Why: "y", Tasks: 3}},
	}
}

func TestMessagesComeBack(t *testing.T) {
	for _, m := range samples() {
		b, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("got  %+v\nwant %+v", got, m)
		}
		for n := range b {
			if short, err := Parse(b[:n]); err == nil && len(short.Parts) >= len(m.Parts) {
				t.Errorf("%d of %d bytes of %s were read as a whole message", n, len(b), b)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range samples() {
		b, err := m.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		again, err := m.Append(nil)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", m, err)
		}
		back, err := Parse(again)
		if err != nil || len(back.Parts) != len(m.Parts) {
			t.Fatalf("%+v comes back as %+v: %v", m, back, err)
		}
		for i := range m.Parts {
			if !bytes.Equal(m.Parts[i], back.Parts[i]) {
				t.Fatalf("part %d: %x comes back as %x", i, m.Parts[i], back.Parts[i])
			}
		}
	})
}

func TestPipeEndsAfterWhatHasBeenSent(t *testing.T) {
	a, b := Pipe()
	for _, m := range samples() {
		if err := a.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	for i, want := range samples() {
		if got, err := b.Recv(); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("message %d: %+v, %v, want %+v", i, got, err, want)
		}
	}
	if _, err := b.Recv(); err != io.EOF {
		t.Errorf("then %v, want EOF", err)
	}
	if err := b.Send(samples()[0]); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("sent on a closed pipe: %v", err)
	}
}

// Close lets a Send that waits for room end.
func TestPipeCloseEndsASendThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		end := make(chan error)
		go func() {
			for {
				if err := a.Send(samples()[0]); err != nil {
					end <- err
					return
				}
			}
		}()
		synctest.Wait()
		b.Close()
		if err := <-end; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestEncoderOfAJob(t *testing.T) {
	for _, j := range []Job{{Precision: "fp32", Codec: "auto"}, {Precision: "bf16", Codec: "zstd"}} {
		if _, err := j.Encoder(); err != nil {
			t.Errorf("%+v: %v", j, err)
		}
	}
	for says, j := range map[string]Job{"gzip": {Precision: "fp32", Codec: "gzip"}, "fp8": {Precision: "fp8", Codec: "auto"}} {
		if _, err := j.Encoder(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error with %q", j, err, says)
		}
	}
}
