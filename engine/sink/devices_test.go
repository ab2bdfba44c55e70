package sink

import (
	"strings"
	"testing"

	"dorylus/engine"
)

func TestDevicesInWords(t *testing.T) {
	s := Summary{Servers: []engine.ServerDone{
		{Role: engine.DeviceRole, Address: "cuda:0", RowValues: 3000, RowBytes: 3000, RowPeer: 1000},
		{Role: engine.DeviceRole, Rank: 1, Address: "cuda:1", RowValues: 2000, RowBytes: 2000, RowPeer: 2000},
	}}
	words := s.Words()
	if want := "Devices    2; rows of " + size(5000) + " to each other, " + size(3000) + " of it without the host between\n"; !strings.Contains(words, want) || strings.Contains(words, "Servers ") {
		t.Errorf("got\n%s\nwant\n%s", words, want)
	}
}
