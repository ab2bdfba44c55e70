package main

import (
	"fmt"
	"strconv"
	"strings"
)

// bytesFlag is a number of bytes that may be given with a unit: 512MiB, 4GB, 64k.
type bytesFlag int64

var byteUnits = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}, {"b", 1}, {"", 1},
}

// Set implements pflag.Value.
func (f *bytesFlag) Set(text string) error {
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if bytes := x * u.bytes; err == nil && bytes >= 0 && bytes < 1<<62 {
			*f = bytesFlag(bytes)
			return nil
		}
		break
	}
	return fmt.Errorf("%q is no number of bytes", text)
}

// String implements pflag.Value.
func (f *bytesFlag) String() string { return strconv.FormatInt(int64(*f), 10) }

// Type implements pflag.Value.
func (f *bytesFlag) Type() string { return "bytes" }
