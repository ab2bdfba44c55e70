//go:build cgo && amd64 && linux

package cpu

import (
	"strings"
	"testing"
	"unsafe"
)

// An instruction set is taken by name and by environment, and refused in words.
func TestOpen(t *testing.T) {
	best := ISAs()[len(ISAs())-1]
	cases := []struct {
		name, env, tile string
		want            string // device, or a part of the error
		fails           bool
	}{
		{name: "", want: "cpu/" + best},
		{name: "scalar", want: "cpu/scalar"},
		{env: "scalar", want: "cpu/scalar"},
		{name: best, env: "scalar", want: "cpu/" + best},
		{name: "sse9", want: `unknown instruction set "sse9", want scalar, avx2 or avx512`, fails: true},
		{env: "neon", want: `DORYLUS_ISA: unknown instruction set "neon"`, fails: true},
		{tile: "0", want: "cpu/" + best},
		{tile: "many", want: `DORYLUS_TILE_KIB is "many"`, fails: true},
		{tile: "-1", want: `DORYLUS_TILE_KIB is "-1"`, fails: true},
	}
	for _, isa := range []string{"avx2", "avx512"} {
		if Why(isa) == nil {
			cases = append(cases, cases[0])
			cases[len(cases)-1].name, cases[len(cases)-1].want = isa, "cpu/"+isa
			continue
		}
		c := cases[0]
		c.name, c.want, c.fails = isa, isa+" cannot run here", true
		cases = append(cases, c)
	}
	for _, c := range cases {
		t.Setenv("DORYLUS_ISA", c.env)
		t.Setenv("DORYLUS_TILE_KIB", c.tile)
		d, err := Open(c.name)
		switch {
		case c.fails && err == nil:
			t.Errorf("%+v: opened %s", c, d.Name())
		case c.fails && !strings.Contains(err.Error(), c.want):
			t.Errorf("%+v: error is %q", c, err)
		case !c.fails && err != nil:
			t.Errorf("%+v: %v", c, err)
		case !c.fails && d.Name() != c.want:
			t.Errorf("%+v: opened %s", c, d.Name())
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Setenv("DORYLUS_ISA", "scalar")
	if d := Describe(); !strings.Contains(d, "in use scalar") {
		t.Errorf("%q does not name the set in use", d)
	}
	t.Log(Describe())
}

// Blocks are aligned, zero, apart, and come back.
func TestArena(t *testing.T) {
	var a arena
	held := map[*byte][]byte{}
	for round := range 3 {
		for _, n := range []int{1, 64, 65, 4096, maxBlock, maxBlock + 1, hugeBytes, hugeBytes + 5, 3 * hugeBytes} {
			b, err := a.alloc(n)
			if err != nil {
				t.Fatal(err)
			}
			p := uintptr(unsafe.Pointer(&b[0]))
			if p%lineBytes != 0 || !watched && n >= hugeBytes && p%hugeBytes != 0 {
				t.Errorf("round %d: %d bytes start at %#x", round, n, p)
			}
			for i := range b {
				if b[i] != 0 {
					t.Fatalf("round %d: byte %d of %d is %d, want 0", round, i, n, b[i])
				}
				b[i] = 0xee
			}
			held[&b[0]] = b
		}
		for p, b := range held {
			for i := range b {
				if b[i] != 0xee {
					t.Fatalf("round %d: byte %d of %d was overwritten with %d", round, i, len(b), b[i])
				}
			}
			if err := a.release(b); err != nil {
				t.Fatal(err)
			}
			delete(held, p)
		}
	}
	if a.mu.inUse != 0 {
		t.Errorf("%d bytes in use after everything was released", a.mu.inUse)
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	if a.mu.reserved != 0 {
		t.Errorf("%d bytes still mapped after close", a.mu.reserved)
	}
	if b, err := a.alloc(-1); err == nil {
		t.Errorf("alloc(-1) gave %d bytes", len(b))
	}
}
