package wire

import (
	"math"
	"strings"
	"testing"
)

// A loss that is no number has to arrive: the engine says then what is wrong with the
// training.
func TestLossComesBackToTheBit(t *testing.T) {
	for _, want := range []float64{0, math.Copysign(0, -1), 0.1, math.SmallestNonzeroFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
		math.Float64frombits(0xfff8_0000_dead_beef), math.Float64frombits(0x7ff0_0000_0000_0001)} {
		b, err := (&Message{Result: &Result{ID: 1<<62 + 1, Block: 3, Loss: want, Last: true}}).Append(nil)
		if err != nil {
			t.Errorf("%v: %v", want, err)
			continue
		}
		m, err := Parse(b)
		if err != nil || m.Result == nil {
			t.Errorf("%v comes back as %+v: %v", want, m, err)
			continue
		}
		if got := *m.Result; math.Float64bits(got.Loss) != math.Float64bits(want) || got.ID != 1<<62+1 || got.Block != 3 || !got.Last {
			t.Errorf("%v (%#x) comes back in %+v (%#x)", want, math.Float64bits(want), got, math.Float64bits(got.Loss))
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	whole, err := (&Message{Stop: &Stop{}}).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	huge := make([]byte, 4+maxHead+1)
	huge[2], huge[0] = maxHead>>16, 1
	for says, b := range map[string][]byte{
		"3 bytes are left, too few for a length": whole[:3],
		"are left":                               whole[:len(whole)-1],
		"its head has 4194305, at most 4194304":  huge,
		"more than 65536 parts":                  append(whole, make([]byte, 4*(maxParts+1))...),
		"read part 0":                            append(whole[:len(whole):len(whole)], 1, 0, 0, 0),
		"read a message's head":                  {1, 0, 0, 0, '{'},
	} {
		if m, err := Parse(b); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d bytes: %+v, %v, want an error with %q", len(b), m, err, says)
		}
	}
	if m, err := Parse(append(whole, make([]byte, 4*maxParts)...)); err != nil || len(m.Parts) != maxParts {
		t.Errorf("%d parts: %v", maxParts, err)
	}
}

func TestPackComesBack(t *testing.T) {
	b, err := Pack(samples())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unpack(b)
	if err != nil || len(got) != len(samples()) {
		t.Fatalf("%d messages, want %d: %v", len(got), len(samples()), err)
	}
	for i, m := range samples() {
		want, _ := m.Append(nil)
		if again, err := got[i].Append(nil); err != nil || string(again) != string(want) {
			t.Errorf("message %d: %s, want %s, %v", i, again, want, err)
		}
	}
	if _, err := Unpack(b[:len(b)-1]); err == nil {
		t.Error("messages that are cut off were read")
	}
}
