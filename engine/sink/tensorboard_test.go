package sink

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestMaskedCRC(t *testing.T) {
	// CRC-32C of "123456789" is 0xe3069283; the mask rotates right by 15 and adds.
	crc := uint32(0xe3069283)
	want := crc>>15 | crc<<17
	want += 0xa282ead8
	if got := maskedCRC([]byte("123456789")); got != want {
		t.Errorf("got %#x, want %#x", got, want)
	}
}

// scalars decodes an event file into "step tag value" lines, wall times checked
// to rise.
func scalars(t *testing.T, data []byte) string {
	t.Helper()
	var b strings.Builder
	last := 0.0
	for n := 0; len(data) > 0; n++ {
		size := binary.LittleEndian.Uint64(data)
		if got, want := binary.LittleEndian.Uint32(data[8:]), maskedCRC(data[:8]); got != want {
			t.Fatalf("record %d: length checksum %#x, want %#x", n, got, want)
		}
		msg := data[12 : 12+size]
		if got, want := binary.LittleEndian.Uint32(data[12+size:]), maskedCRC(msg); got != want {
			t.Fatalf("record %d: checksum %#x, want %#x", n, got, want)
		}
		data = data[16+size:]
		step := uint64(0)
		for len(msg) > 0 {
			field, kind, k := protowire.ConsumeTag(msg)
			msg = msg[k:]
			switch field {
			case 1:
				bits, k := protowire.ConsumeFixed64(msg)
				if wall := math.Float64frombits(bits); wall <= last {
					t.Fatalf("record %d: wall time %v after %v", n, wall, last)
				} else {
					last = wall
				}
				msg = msg[k:]
			case 2:
				step, k = protowire.ConsumeVarint(msg)
				msg = msg[k:]
			case 3:
				text, k := protowire.ConsumeString(msg)
				fmt.Fprintln(&b, text)
				msg = msg[k:]
			case 5:
				summary, k := protowire.ConsumeBytes(msg)
				msg = msg[k:]
				_, _, k = protowire.ConsumeTag(summary)
				value, _ := protowire.ConsumeBytes(summary[k:])
				_, _, k = protowire.ConsumeTag(value)
				tag, m := protowire.ConsumeString(value[k:])
				value = value[k+m:]
				_, _, k = protowire.ConsumeTag(value)
				bits, _ := protowire.ConsumeFixed32(value[k:])
				fmt.Fprintln(&b, step, tag, math.Float32frombits(bits))
			default:
				t.Fatalf("record %d: field %d of type %d", n, field, kind)
			}
		}
	}
	return b.String()
}

func TestTensorBoard(t *testing.T) {
	var b bytes.Buffer
	tb := NewTensorBoard(&b, clock(), nil)
	send(tb, start(2, 0))
	send(tb, epoch(0, 1.5, 0.25, 0.5)...)
	send(tb, epoch(1, 1.25, math.NaN(), 0.75)...)
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	const want = `brain.Event:2
1 loss/train 1.5
1 time/epoch_seconds 0.01
1 acc/train 0.9
1 acc/val 0.25
1 acc/test 0.5
1 loss/val 1.5
2 loss/train 1.25
2 time/epoch_seconds 0.02
2 acc/train 0.91
2 acc/test 0.75
2 loss/val 1.5
`
	if got := scalars(t, b.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
