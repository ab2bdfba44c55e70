package dataset

import (
	"context"
	"strings"
	"testing"
)

func TestProgress(t *testing.T) {
	type state struct{ done, total, calls int64 }
	for name, files := range map[string]map[string]string{
		"d": {"edges.csv": strings.Repeat("0,1\n", 1<<20), "labels.csv": "0\n1\n"},
		// The zip reader reads parts out of order.
		"d/b.npz": {"b.npz": zipOf(tinyBench())},
	} {
		seen := map[string]state{}
		_, err := Open(context.Background(), name, Options{FS: folder(files), Progress: func(file string, done, total int64) {
			s := seen[file]
			if done < s.done || done > total || s.total != 0 && total != s.total {
				t.Errorf("%s: %d of %d after %d of %d", file, done, total, s.done, s.total)
			}
			seen[file] = state{done, total, s.calls + 1}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range files {
			if s := seen[file]; s.done != int64(len(text)) || s.total != s.done {
				t.Errorf("%s ended at %d of %d, of %d bytes", file, s.done, s.total, len(text))
			}
		}
		if s := seen["edges.csv"]; name == "d" && (s.calls < 3 || s.calls > 8) {
			t.Errorf("%d reports for 4 MiB", s.calls)
		}
	}
}

func TestInterner(t *testing.T) {
	r := newRNG(7, 0)
	var n interner
	want := map[string]int32{}
	var names []string
	for range 20000 {
		b := make([]byte, r.intn(12))
		for i := range b {
			b[i] = byte('a' + r.intn(3))
		}
		names = append(names, string(b))
	}
	names = append(names, strings.Repeat("x", 1<<17), strings.Repeat("x", 1<<17))
	block := &edgeBlock{names: names}
	block.hash()
	block.intern(&n)
	for i, name := range names {
		k, ok := want[name]
		if !ok {
			k = int32(len(want))
			want[name] = k
		}
		if block.small[i] != k || n.names[k] != name {
			t.Fatalf("name %d, %q: got %d, want %d", i, clip(name), block.small[i], k)
		}
	}
	for name, k := range want {
		if got, ok := n.lookup(name); !ok || got != k {
			t.Fatalf("%q: got %d, %v, want %d", clip(name), got, ok, k)
		}
	}
	if _, ok := n.lookup("not there"); ok {
		t.Error("a name that was never added is found")
	}
}

// The fast path gives the bits that strconv gives.
func TestFastWeights(t *testing.T) {
	for _, s := range []string{"0.5", "1", "16777215", "16777217", "0.1", "3.14159", "1.", ".5", "0000.25", "123456789", "0.0000001", "99999.99", "1e3", "-2", "0.30000001"} {
		line := []byte("1,2," + s + "\n")
		p := edgeParser{sep: ',', cols: 3, src: 0, dst: 1, weight: 2}
		fast, _, err := p.parse(line)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		var slow edgeBlock
		if err := p.slow(&slow, line[:len(line)-1], 0); err != nil || fast.weight[0] != slow.weight[0] {
			t.Errorf("%s: fast %v, slow %v, %v", s, fast.weight[0], slow.weight[0], err)
		}
	}
}
