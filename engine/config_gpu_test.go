package engine

import (
	"strings"
	"testing"
)

func TestGPUMemoryLimit(t *testing.T) {
	const free = 10 << 30
	for _, c := range []struct {
		text string
		want int64
		err  string
	}{
		{"90%", free / 10 * 9, ""}, {"100 %", free, ""}, {"12.5%", free / 8, ""},
		{"2GiB", 2 << 30, ""}, {"500MiB", 500 << 20, ""}, {"1.5gb", 1500000000, ""}, {"4096", 4096, ""}, {"7 B", 7, ""},
		{"12GiB", 0, "12884901888 bytes are more than the 10737418240 that are free"},
		{"0%", 0, "no share"}, {"-1GiB", 0, "no amount"}, {"lots", 0, "no amount"}, {"NaN", 0, "no amount"}, {"", 0, "no amount"}, {"0.5", 0, "no amount"},
	} {
		got, err := GPUMemoryLimit(c.text, free)
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q of %d free: %d, %v; want %d, %q", c.text, free, got, err, c.want, c.err)
		}
	}
}
