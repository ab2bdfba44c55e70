package dataset

import (
	"context"
	"math"
	"slices"
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
	names = append(names, strings.Repeat("x", 1<<21), strings.Repeat("x", 1<<21))
	block := &edgeBlock{}
	for _, name := range names {
		block.addName(name)
	}
	block.hash()
	block.intern(&n)
	list := n.list()
	for i, name := range names {
		k, ok := want[name]
		if !ok {
			k = int32(len(want))
			want[name] = k
		}
		if block.small[i] != k || list[k] != name {
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

func TestIDInterner(t *testing.T) {
	r := newRNG(11, 0)
	var n idInterner
	want := map[int64]int32{}
	var ids []int64
	for range 20000 {
		ids = append(ids, int64(r.intn(5000))<<uint(r.intn(50)))
	}
	ids = append(ids, 0, math.MaxInt64, math.MaxInt64)
	block := &edgeBlock{large: ids}
	block.internIDs(&n)
	for i, id := range ids {
		k, ok := want[id]
		if !ok {
			k = int32(len(want))
			want[id] = k
		}
		if block.small[i] != k || n.ids[k] != id {
			t.Fatalf("id %d, %d: got %d, want %d", i, id, block.small[i], k)
		}
	}
	if _, ok := n.lookup(-1); ok {
		t.Error("an id that was never added is found")
	}
	rank, sorted := n.ascending()
	for id, k := range want {
		if got, ok := n.lookup(id); !ok || got != k || sorted[rank[k]] != id {
			t.Fatalf("%d: got %d, %v, want %d; rank %d is of %d", id, got, ok, k, rank[k], sorted[rank[k]])
		}
	}
	if !slices.IsSorted(sorted) {
		t.Error("ids are not ascending")
	}
}

// Numbers up to the largest of 64 bits are read as they are, beyond it refused.
func TestLargeIDs(t *testing.T) {
	text := "9223372036854775807,1\n1,4294967296\n0,1000000000000000000\n"
	raw, err := Open(context.Background(), "d/e.csv", Options{FS: folder(map[string]string{"e.csv": text})})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"0", "1", "4294967296", "1000000000000000000", "9223372036854775807"}; !slices.Equal(raw.IDs, want) {
		t.Errorf("ids %q, want %q", raw.IDs, want)
	}
	if !slices.Equal(raw.Src, []int32{4, 1, 0}) || !slices.Equal(raw.Dst, []int32{1, 2, 3}) {
		t.Errorf("edges %v -> %v", raw.Src, raw.Dst)
	}
	for _, big := range []string{"9223372036854775808", "18446744073709551616", "18446744073709551617", "99999999999999999999"} {
		_, err := Open(context.Background(), "d/e.csv", Options{FS: folder(map[string]string{"e.csv": "0,1\n0," + big + "\n"})})
		if err == nil || !strings.Contains(err.Error(), big) {
			t.Errorf("%s: %v", big, err)
		}
	}
}
