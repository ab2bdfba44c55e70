package spill

import (
	"strings"
	"testing"

	"dorylus/kernels"
)

const mb = int64(1) << 20

// amazon is about a GCN on a graph of 9 million vertices.
func amazon() []Need {
	return []Need{
		{Name: "graph and lists", Bytes: 2500 * mb},
		{Purpose: kernels.Weights, Bytes: mb},
		{Purpose: kernels.FirstGather, Bytes: 10800 * mb, Rows: 9_400_000, Up: 1},
		{Purpose: kernels.Published, Bytes: 1150 * mb, Rows: 9_400_000, Up: 2, Down: 1, Gathered: true},
		{Purpose: kernels.Activations, Bytes: 2300 * mb, Rows: 9_400_000, Up: 2, Down: 1},
		{Purpose: kernels.Gradients, Bytes: 1150 * mb, Rows: 9_400_000, Up: 1, Down: 1},
	}
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		limit   int64
		verdict Verdict
		spilled string // purposes
		says    []string
	}{
		{80 << 10, Resident, "", []string{"memory plan of cuda:0: resident", "first aggregation"}},
		{12 << 10, Streamed, "first aggregation", []string{"staging", "10.55 GiB to the device and 0 bytes back: 0.453 s at 25 GB/s each way (estimate)"}},
		{9 << 10, Streamed, "first aggregation", nil},
		{5000, Streamed, "first aggregation,published rows,activations", nil},
		{2700, Refused, "", nil},
	} {
		p := MakePlan(Budget{Device: "cuda:0", Limit: c.limit * mb, Free: 15 << 30, Total: 16 << 30}, amazon(), nil)
		var spilled []string
		var gpu int64
		for _, it := range p.Items {
			if it.Spilled {
				spilled = append(spilled, it.Name)
			} else {
				gpu += it.Bytes
			}
			if p.Spills(it.Purpose, mb) != (it.Spilled && p.Verdict == Streamed) {
				t.Errorf("limit %d MiB: Spills(%v) differs from the item", c.limit, it.Purpose)
			}
		}
		if p.Verdict != c.verdict || c.verdict != Refused && strings.Join(spilled, ",") != c.spilled {
			t.Errorf("limit %d MiB: %v with %v in host memory, want %v with %s\n%s", c.limit, p.Verdict, spilled, c.verdict, c.spilled, p)
		}
		if p.Verdict != Refused && p.OnGPU+p.Arena > p.Limit {
			t.Errorf("limit %d MiB: the plan takes %d bytes, the limit is %d", c.limit, p.OnGPU+p.Arena, p.Limit)
		}
		if gpu != p.OnGPU {
			t.Errorf("limit %d MiB: OnGPU is %d, the items on the device have %d", c.limit, p.OnGPU, gpu)
		}
		for _, s := range c.says {
			if !strings.Contains(p.String(), s) {
				t.Errorf("limit %d MiB: the plan does not say %q:\n%s", c.limit, s, p)
			}
		}
		if (p.Err() != nil) != (c.verdict == Refused) {
			t.Errorf("limit %d MiB: error %v", c.limit, p.Err())
		}
	}
}

// TestSmallestChange: the limit that a refusal names does, and one a little smaller
// does not.
func TestSmallestChange(t *testing.T) {
	b := Budget{Device: "cuda:0", Limit: 2 << 30, Free: 15 << 30, Total: 16 << 30}
	p := MakePlan(b, amazon(), nil)
	if p.Verdict != Refused || !strings.Contains(p.Err().Error(), "set --gpu-memory="+mib(p.Limit+p.Short)) {
		t.Fatalf("verdict %v, error %v", p.Verdict, p.Err())
	}
	b.Limit += p.Short
	if p := MakePlan(b, amazon(), nil); p.Verdict != Streamed {
		t.Errorf("with the %d bytes that were asked for: %v", b.Limit, p.Err())
	}
	b.Limit--
	if p := MakePlan(b, amazon(), nil); p.Verdict != Refused || p.Short != 1 {
		t.Errorf("with a byte less: %v, short of %d", p.Verdict, p.Short)
	}
	b.Limit, b.Free = 1<<30, 1<<30
	if err := MakePlan(b, amazon(), nil).Err(); err == nil || !strings.Contains(err.Error(), "which others use") {
		t.Errorf("with a device that others use: %v", err)
	}
	b.Total = 2 << 30
	if err := MakePlan(b, amazon(), nil).Err(); err == nil || !strings.Contains(err.Error(), "use more partitions, on at least 3 devices") {
		t.Errorf("with a device that is too small: %v", err)
	}
}

// TestPlanIsNeverWorseForMore: with more memory nothing moves to the host.
func TestPlanIsNeverWorseForMore(t *testing.T) {
	host := int64(1) << 60
	for limit := 1 << 10 * mb; limit < 20<<10*mb; limit += 100 * mb {
		p := MakePlan(Budget{Limit: limit}, amazon(), nil)
		if p.Verdict == Refused {
			continue
		}
		if p.OnHost > host {
			t.Errorf("with %d bytes %d are in host memory, with 100 MiB less %d", limit, p.OnHost, host)
		}
		host = p.OnHost
	}
}

// TestAPurposeInPart: of a purpose the largest matrices go to the host, as many as it
// takes; small ones never do, and the plan says which.
func TestAPurposeInPart(t *testing.T) {
	needs := []Need{
		{Purpose: kernels.Weights, Bytes: mb},
		{Purpose: kernels.Activations, Bytes: 400 * mb, Each: 200 * mb, Count: 2, Rows: 1000, Up: 1},
		{Purpose: kernels.Activations, Bytes: 300 * mb, Each: 300 * mb, Count: 1, Rows: 1000, Up: 1},
		{Purpose: kernels.Activations, Bytes: 100 * mb, Each: 50 << 10, Count: 2048, Rows: 10, Up: 1},
	}
	p := MakePlan(Budget{Limit: 600 * mb}, needs, nil)
	if p.Verdict != Streamed || p.OnHost != 300*mb || !p.Spills(kernels.Activations, 300*mb) || p.Spills(kernels.Activations, 200*mb) {
		t.Errorf("%v with %d bytes in host memory\n%s", p.Verdict, p.OnHost, p)
	}
	for _, s := range []string{"activations             500.0 MiB  device, 2 x 200.0 MiB, 2048 x 50.0 KiB", "activations             300.0 MiB  host, 1 x 300.0 MiB"} {
		if !strings.Contains(p.String(), s) {
			t.Errorf("the plan does not say %q:\n%s", s, p)
		}
	}
	if p := MakePlan(Budget{Limit: 120 * mb}, needs, nil); p.OnHost != 700*mb || p.Spills(kernels.Activations, 50<<10) {
		t.Errorf("%v with %d bytes in host memory, want 700 MiB\n%s", p.Verdict, p.OnHost, p)
	}
	if p := MakePlan(Budget{Limit: 50 * mb}, needs, nil); p.Verdict != Refused {
		t.Errorf("small matrices are given up: %v", p.Verdict)
	}
}

// TestMoments: a plan fits each moment of a run, not what is held at any time together, and
// what is there for a while counts only where it is there with what stays.
func TestMoments(t *testing.T) {
	needs := []Need{
		{Purpose: kernels.FirstGather, Bytes: 100 * mb, Rows: 1000, Up: 1},
		{Purpose: kernels.Activations, Bytes: 80 * mb, Rows: 1000, Up: 1},
		{Name: "a panel"},
	}
	moments := [][]int64{{100 * mb, 0, 50 * mb}, {100 * mb, 80 * mb, 0}}
	if p := MakePlan(Budget{Limit: 180 * mb}, needs, moments); p.Verdict != Resident || p.OnGPU != 180*mb || p.Start != 0 {
		t.Errorf("%v, %d bytes, %d for a while", p.Verdict, p.OnGPU, p.Start)
	}
	p := MakePlan(Budget{Limit: 10 * mb}, needs, moments)
	if least := p.Limit + p.Short; p.Verdict != Refused || p.OnGPU != 50*mb || p.Start != 50*mb || least < 50*mb || least > 53*mb {
		t.Errorf("%v, %d bytes, %d for a while, %d at least", p.Verdict, p.OnGPU, p.Start, p.Limit+p.Short)
	}
}

// TestEdgesAreNamed: a graph whose edges do not fit is refused in words.
func TestEdgesAreNamed(t *testing.T) {
	b := Budget{Device: "cuda:0", Limit: 1 << 30}
	needs := []Need{{Name: "edges", Bytes: 3 << 30, Graph: true}, {Purpose: kernels.Activations, Bytes: 1 << 30, Rows: 1000}}
	if err := MakePlan(b, needs, nil).Err(); err == nil || !strings.Contains(err.Error(), "3.00 GiB of that are the edges of the graph with their lists, which are never streamed") {
		t.Errorf("%v", err)
	}
	if err := MakePlan(b, amazon(), nil).Err(); err == nil || strings.Contains(err.Error(), "never streamed") {
		t.Errorf("%v", err)
	}
}
