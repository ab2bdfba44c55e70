package main

import (
	"fmt"
	"strings"
	"testing"

	"dorylus/cluster/member"
	"dorylus/engine"
	"dorylus/kernels/cuda"
)

// gpus is a report of GPUs of those capabilities; those below 7.0 cannot be used.
func gpus(capabilities ...string) *cuda.Report {
	r := &cuda.Report{Built: true}
	for i, c := range capabilities {
		d := cuda.GPU{Name: fmt.Sprintf("cuda:%d", i), Model: "GPU of " + c, Capability: c, Bytes: 16 << 30, Free: 15 << 30, PTX: "sm_70", Usable: c >= "7.0"}
		if c >= "8.0" {
			d.PTX = "sm_80"
		}
		if !d.Usable {
			d.Problem = &cuda.Problem{Reason: "compute capability " + c + ", 7.0 needed", Next: "use a newer GPU"}
		}
		r.Devices = append(r.Devices, d)
	}
	return r
}

// Each of several servers on a host takes a GPU of its own; none takes one twice unless
// that was asked for.
func TestGPUsOfServers(t *testing.T) {
	set := ""
	for _, c := range []struct {
		gpu          string
		local, mates int
		visible      *string
		want         string
		err          string
	}{
		{"auto", 0, 0, nil, "[1]", ""}, {"0,1", 0, 0, nil, "[0 1]", ""}, {"2", 0, 0, nil, "[2]", ""},
		{"auto", 0, 1, nil, "[1]", ""}, {"0,1", 0, 1, nil, "[0]", ""}, // a server has one, whoever else is on its host
		{"auto", 0, 2, nil, "[1]", ""}, {"auto", 1, 2, nil, "[2]", ""},
		{"auto", 2, 3, nil, "", "graph server 3 of 3 on this host, which has 2 GPUs for them (cuda:1, cuda:2)"},
		{"auto", 2, 3, &set, "[1]", ""}, // a launcher shows each its own
		{"2,1", 1, 2, nil, "[1]", ""}, {"2", 1, 2, nil, "[2]", ""},
		{"2,1", 2, 3, nil, "", "which has 2 GPUs for them (cuda:2, cuda:1)"},
	} {
		r := gpus("6.0", "7.0", "9.0")
		r.Visible = c.visible
		numbers, err := engine.GPUNumbers(c.gpu)
		if err != nil {
			t.Fatal(err)
		}
		a := &app{local: c.local, mates: c.mates}
		got, err := a.ownGPUs(r, numbers)
		if err == nil && fmt.Sprint(got) != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("--gpu=%s, server %d of %d: %v, %v; want %s, %q", c.gpu, c.local, c.mates, got, err, c.want, c.err)
		}
	}
	s := &seat{Membership: member.Membership{Rank: 2, Graphs: []string{"a:1", "b:1", "a:2", "a:3"}}}
	if local, mates := s.mates(); local != 1 || mates != 3 {
		t.Errorf("server 2 of %v is number %d of %d on its host, want 1 of 3", s.Graphs, local, mates)
	}
}

// What a GPU lacks is said before it is opened; what no GPU of its kind has is a mistake of
// the caller.
func TestGPUsThatWillNotDo(t *testing.T) {
	for _, c := range []struct {
		n                      int
		precision, memory, err string
		code                   int
	}{
		{1, "fp32", "90%", "", 0}, {2, "bf16", "14GiB", "", 0},
		{0, "fp32", "90%", "--gpu=X: cuda:0 (GPU of 6.0) cannot be used: compute capability 6.0, 7.0 needed; use a newer GPU", exitFailed},
		{1, "tf32", "90%", "--precision=tf32: cuda:1 (GPU of 7.0, compute capability 7.0) computes in fp32 only", exitUsage},
		{2, "fp32", "16GiB", "--gpu-memory=16GiB: cuda:2 (GPU of 9.0): 17179869184 bytes are more than the 16106127360 that are free", exitFailed},
		{3, "fp32", "90%", "--gpu=X: the driver shows 3 GPUs, numbered from 0", exitFailed},
	} {
		g := &gpuChoice{report: *gpus("6.0", "7.0", "9.0")}
		err := g.usable(c.n, &engine.Config{GPU: "X", Precision: c.precision, GPUMemory: c.memory})
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("GPU %d, %s, %s: %v, want %q", c.n, c.precision, c.memory, err, c.err)
		}
		if _, usage := err.(*codedError); usage != (c.code == exitUsage) {
			t.Errorf("GPU %d, %s, %s: %v has exit code 2: %v", c.n, c.precision, c.memory, err, usage)
		}
	}
}

// A manifest asks for a GPU for each graph server, on a machine that needs none itself.
func TestGPUsOfPods(t *testing.T) {
	r := call(t, t.TempDir(), driverEnv("/nowhere/libcuda.so.1"), "launch", "k8s", "--dry-run", "--image=x", "--servers=2", "--certs-secret=c", "--out-claim=o", "--out=/out/RUN", "--mode=gpu", "--precision=tf32")
	if r.code != exitDone || strings.Count(r.out, `nvidia.com/gpu: "1"`) != 1 || !strings.Contains(r.out, "--mode=gpu") || !strings.Contains(r.out, "--precision=tf32") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}
