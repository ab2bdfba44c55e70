package main

import (
	"strings"
	"testing"
	"time"
)

func TestStages(t *testing.T) {
	for _, test := range []struct {
		columns int
		want    string
	}{
		{0, "prepare: read e.csv 50 % of 500 MB, 3 s left\n" +
			"prepare: write 50 % of 2.0 GB, 4 s left\n"},
		{31, "\rread e.csv 10 % of 500 MB|\rread e.csv 50 % of 500 MB, 3 s|\rorder                         |\rwrite 25 % of 2.0 GB|\rwrite 50 % of 2.0 GB, 4 s left|\r                              \r"},
	} {
		var b pieces
		clock := time.Unix(0, 0)
		s := &stages{w: &b, columns: test.columns, now: func() time.Time { return clock }, begun: clock}
		at := func(seconds float64) { clock = time.Unix(0, int64(seconds*1e9)) }
		read, write := s.bytes("read"), s.writing()
		read("e.csv", 50e6, 500e6)
		at(0.05)
		read("e.csv", 60e6, 500e6)
		at(3)
		read("e.csv", 250e6, 500e6)
		at(3.05)
		s.counting()("order", 0, 100)
		at(4)
		write("in_indices.npy", 500e6, 2e9)
		at(8)
		write("features.npy", 1e9, 2e9)
		s.clear()
		if got := strings.Join(b, "|"); test.columns == 0 && strings.Join(b, "") != test.want || test.columns > 0 && got != test.want {
			t.Errorf("%d columns:\ngot  %q\nwant %q", test.columns, got, test.want)
		}
	}
	var none *stages
	none.clear()
	if none.counting() != nil || none.bytes("read") != nil || none.writing() != nil {
		t.Error("a quiet run reports its progress")
	}
}

// pieces keeps each write.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

func TestBytesFlag(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1000": 1000, "64k": 64e3, "512MiB": 512 << 20, "1.5GB": 15e8, "2 GiB": 2 << 30, "3g": 3e9} {
		var b bytesFlag
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("%s: %d, %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "much", "-1", "1TB?", "GB", "nan", "1e300GB"} {
		var b bytesFlag
		if err := b.Set(text); err == nil {
			t.Errorf("%q is taken for %d bytes", text, b)
		}
	}
}

func TestMemoryBoundsTheOrder(t *testing.T) {
	dir := t.TempDir()
	const graph = "synth:sbm,vertices=4000,degree=8,classes=4,features=4"
	free := mustRun(t, dir, "prepare", graph, "-o", "free")
	tight := mustRun(t, dir, "prepare", graph, "-o", "tight", "--memory=150k")
	if !strings.Contains(tight, "Order: stream (label propagation would take ") || strings.Contains(free, "Order: stream") {
		t.Errorf("without a limit:\n%s\nwithin 150 kB:\n%s", free, tight)
	}
	wantFailure(t, call(t, dir, nil, "prepare", graph, "-o", "x", "--memory=lots"), exitUsage, "--memory=lots: give a number of bytes, as 512MiB or 4GB")
}
