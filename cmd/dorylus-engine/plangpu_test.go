package main

import (
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/cost"
)

// A plan for GPUs is an estimate, and says so; faster memory makes it shorter.
func TestPlanOfGPUs(t *testing.T) {
	args := []string{"plan", "--mode=gpu", "--data=synth:sbm,vertices=20000,degree=20,classes=4,features=64", "--hidden=32", "--servers=1,2", "--json", "--progress=none"}
	plan := func(more ...string) map[string]any {
		return object(t, mustRun(t, t.TempDir(), append(args, more...)...))
	}
	slow, fast := plan(), plan("--instance=p5en.48xlarge")
	if slow["instance"] != "p3.2xlarge" || slow["estimated"] != true || slow["cores"] != 1.0 || !strings.Contains(slow["assumed"].([]any)[0].(string), "ESTIMATE, nothing was measured") {
		t.Errorf("instance %v, estimated %v, cores %v, assumed %v", slow["instance"], slow["estimated"], slow["cores"], slow["assumed"])
	}
	seconds := func(m map[string]any) float64 {
		return m["plans"].([]any)[0].(map[string]any)["epoch_seconds"].(float64)
	}
	if a, b := seconds(slow), seconds(fast); !(b < a) || !(b > 0) {
		t.Errorf("an epoch takes %v s on a V100, %v on an H200", a, b)
	}
	text := mustRun(t, t.TempDir(), append(args, "--json=false")...)
	if !strings.Contains(text, "ESTIMATE: times and dollars are computed from a data sheet") {
		t.Errorf("the text does not say that it is an estimate:\n%s", text)
	}
}

// A run is priced as a type that has the GPUs it uses, parameter servers as one without.
func TestInstancesOfGPUs(t *testing.T) {
	table, err := cost.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		instance string
		gpus     int // of this process
		mates    int
		want     string
		err      string
	}{
		{"", 1, 0, "p3.2xlarge", ""}, {"", 2, 0, "p3.8xlarge", ""}, {"", 1, 5, "p3.16xlarge", ""}, {"", 9, 0, "", "no type of server with 9 GPUs"},
		{"g5.12xlarge", 4, 0, "g5.12xlarge", ""}, {"g5.12xlarge", 1, 5, "", "g5.12xlarge has 4 GPUs; the run uses 5 on a server"},
		{"c5n.2xlarge", 1, 0, "", "c5n.2xlarge has no GPU"}, {"none", 3, 0, "none", ""},
	} {
		conf := engine.DefaultConfig("gcn")
		conf.Mode, conf.Instance = "gpu", c.instance
		a := &app{gpu: &gpuChoice{use: make([]int, c.gpus)}, mates: c.mates}
		got, err := a.instance(&conf, table)
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("--instance=%s, %d GPUs, %d servers on the host: %q, %v; want %q, %q", c.instance, c.gpus, c.mates, got, err, c.want, c.err)
		}
		if p := a.paramInstance(&conf, c.want); c.want == "p3.2xlarge" && p != "c5n.2xlarge" {
			t.Errorf("parameter servers are priced as %s", p)
		}
	}
}
