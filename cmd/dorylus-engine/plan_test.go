package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/engine/sink"
)

// given are speeds that replace the measurement, so that a plan is the same everywhere.
var given = []string{"--gather-speed=10", "--product-speed=20", "--value-speed=15"}

func planned(t *testing.T, args ...string) *planReport {
	t.Helper()
	r := call(t, t.TempDir(), nil, append([]string{"plan", "--json"}, args...)...)
	if r.code != exitDone || r.err != "" {
		t.Fatalf("plan %v: exit %d\n%s", args, r.code, r.err)
	}
	var p planReport
	dec := json.NewDecoder(strings.NewReader(r.out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("%v\n%s", err, r.out)
	}
	return &p
}

// sbmText is a graph of 30,000 vertices.
const sbmText = "--data=synth:sbm,vertices=30000,degree=40,classes=8,features=64,seed=1"

func TestPlanTable(t *testing.T) {
	args := append([]string{"plan", sbmText, "--hidden=64", "--servers=4,1,2,2", "--network=10Gbit", "--epochs=10"}, given...)
	r := call(t, t.TempDir(), nil, args...)
	if r.code != exitDone {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	for _, want := range []string{
		"cpu, gcn 2x64, on synth-sbm-30000: 30000 vertices, 1200000 edges; 10 epochs, sync\n",
		"Each server: c5n.2xlarge, 8 cores, 22.5 GB memory, 10 Gbit/s\n",
		"\nGains stop at ", "seconds of cores an epoch: AV ",
		"speeds of a core were given: gathers 10 GB/s, products 20 GFLOP/s, rows in order 15 GB/s",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	if strings.Contains(r.out, "Measured here") {
		t.Errorf("nothing was measured, but it says so:\n%s", r.out)
	}
	if again := call(t, t.TempDir(), nil, args...); again.out != r.out {
		t.Errorf("the second plan is\n%s\nthe first was\n%s", again.out, r.out)
	}
}

// More of anything that helps makes no epoch longer; dollars follow from seconds.
func TestPlanFollowsItsHardware(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it runs many processes")
	}
	base := append([]string{sbmText, "--hidden=64", "--servers=1,4", "--epochs=10"}, given...)
	p := planned(t, base...)
	one, four := p.Plans[0], p.Plans[1]
	if one.SentBytes != 0 || one.Messages != 0 || four.SentBytes <= four.GhostBytes || four.GhostRows == 0 {
		t.Errorf("1 server sends %d bytes in %d messages, 4 send %d, of them %d of %d rows", one.SentBytes, one.Messages, four.SentBytes, four.GhostBytes, four.GhostRows)
	}
	if want := 4 * 0.432 * four.RunSeconds / 3600; math.Abs(*four.RunUSD-want) > 1e-8 {
		t.Errorf("4 servers cost $%v for %v s, want $%v", *four.RunUSD, four.RunSeconds, want)
	}
	slow := planned(t, append(base, "--network=100Mbit")...)
	if !(slow.Plans[1].EpochSeconds > four.EpochSeconds) || slow.Plans[0].EpochSeconds != one.EpochSeconds {
		t.Errorf("at 100 Mbit/s an epoch takes %v s on 1 and %v s on 4; at 10 Gbit/s %v and %v", slow.Plans[0].EpochSeconds, slow.Plans[1].EpochSeconds, one.EpochSeconds, four.EpochSeconds)
	}
	half := planned(t, append(base, "--network=100Mbit", "--wire-precision=bf16")...)
	if got := half.Plans[1].GhostBytes * 2; got != four.GhostBytes {
		t.Errorf("bf16 sends %d bytes, fp32 %d", got/2, four.GhostBytes)
	}
	few := planned(t, append(base, "--threads=1")...)
	if !(few.Plans[0].EpochSeconds > 4*one.EpochSeconds) {
		t.Errorf("an epoch takes %v s on 1 core and %v s on 8", few.Plans[0].EpochSeconds, one.EpochSeconds)
	}
	async := planned(t, append(base, "--pipeline=async", "--staleness=2", "--async-wait=0")...)
	if !(async.Plans[1].TrainSeconds < four.TrainSeconds) {
		t.Errorf("an async epoch takes %v s, a sync one %v s", async.Plans[1].TrainSeconds, four.TrainSeconds)
	}
	lambda := planned(t, append(base, "--mode=lambda", "--lambdas=16")...)
	if x := lambda.Plans[1]; x.Workers != 64 || x.LambdaBytes == 0 || *x.RunUSD <= 4*0.432*x.RunSeconds/3600 {
		t.Errorf("Lambda mode: %d workers, %d bytes, $%v for %v s", x.Workers, x.LambdaBytes, *x.RunUSD, x.RunSeconds)
	}
}

func TestPlanRefusals(t *testing.T) {
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitFailed, "no plan fits: with 2 servers the largest needs", []string{"--memory=64MiB", "--servers=1,2"}},
		{exitUsage, `--servers=1,x: "x" is no number of servers`, []string{"--servers=1,x"}},
		{exitUsage, `--servers=0: "0" is no number of servers`, []string{"--servers=0"}},
		{exitUsage, "--network=10: it is no bandwidth; write 10Gbit", []string{"--network=10"}},
		{exitUsage, "--network=0Gbit: it is no bandwidth", []string{"--network=0Gbit"}},
		{exitUsage, "--instance=c5n.3xlarge: no price of instance type", []string{"--instance=c5n.3xlarge"}},
		{exitUsage, "say how many cores a server has, with --threads=N", []string{"--instance=none"}},
		{exitUsage, "give all three, above 0", []string{"--gather-speed=10"}},
		{exitUsage, "--params=0: at least 1 is needed", []string{"--params=0"}},
		{exitUsage, "--instance=c5.2xlarge: c5.2xlarge has no GPU; name a type that has one, as p3.2xlarge", []string{"--mode=gpu", "--instance=c5.2xlarge"}},
		{exitFailed, "--instance=none says nothing of a GPU", []string{"--mode=gpu", "--instance=none"}},
	} {
		r := call(t, t.TempDir(), nil, append([]string{"plan"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("plan %v: exit %d, want %d and %q\n%s", c.args, r.code, c.code, c.want, r.err)
		}
	}
	p := planned(t, "--instance=none", "--threads=2", "--servers=1", "--network=800Mbit/s")
	if p.Plans[0].RunUSD != nil || !p.Plans[0].Fits || p.Gbit != 0.8 {
		t.Errorf("unpriced: $%v, fits %v, %v Gbit/s", p.Plans[0].RunUSD, p.Plans[0].Fits, p.Gbit)
	}
	some := planned(t, append([]string{sbmText, "--memory=300MB", "--servers=1,16", "--hidden=512"}, given...)...)
	if some.Plans[0].Fits || !some.Plans[1].Fits || some.GainsStop != 16 || some.Plans[0].RunUSD != nil {
		t.Errorf("1 server fits: %v, 16 do: %v; gains stop at %d", some.Plans[0].Fits, some.Plans[1].Fits, some.GainsStop)
	}
}

// The bytes of rows that a plan predicts are those that servers send.
func TestPlannedBytesAreSent(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts 12 processes")
	}
	ownTemp(t)
	defer nobodyLeft(t)
	dir := t.TempDir()
	for _, c := range [][]string{
		{"--servers=3", "--hidden=8", "--threads=1"},
		{"--servers=2", "--model=gat", "--hidden=4", "--heads=2", "--threads=1", "--eval-every=2"},
	} {
		var sent [2]int64
		for i, epochs := range []int{2, 6} {
			out := filepath.Join(dir, fmt.Sprintf("%s-%d", c[1], epochs))
			r := call(t, dir, nil, append([]string{"launch", "local", "--progress=none", "--out=" + out, fmt.Sprintf("--epochs=%d", epochs)}, c...)...)
			if r.code != exitDone {
				t.Fatalf("launch %v: exit %d\n%s", c, r.code, r.err)
			}
			sent[i] = rowBytes(t, out)
		}
		args := append([]string{}, c...)
		p := planned(t, append(args, given...)...)
		if want, got := (sent[1]-sent[0])/4, p.Plans[0].GhostBytes; got != want || want == 0 {
			t.Errorf("%v: %d bytes of rows are planned for an epoch, %d were sent", c, got, want)
		}
	}
}

// rowBytes are the bytes of rows that all servers of a run have sent.
func rowBytes(t *testing.T, run string) (n int64) {
	t.Helper()
	f, err := os.Open(filepath.Join(run, eventsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var e struct {
			Event string
			Bytes int64 `json:"row_value_bytes_sent"`
		}
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		n += e.Bytes
	}
	return n
}

// What is planned for this machine is what it takes, within a factor of 3 even where other
// programs keep it busy: seconds of tasks, on one core and on two. Memory likewise.
func TestPlanAgreesWithARun(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "graph")
	if r := call(t, dir, nil, "prepare", strings.TrimPrefix(sbmText, "--data="), "-o", store); r.code != exitDone {
		t.Fatal(r.err)
	}
	for _, threads := range []string{"--threads=1", "--threads=2"} {
		args := []string{"--data=" + store, "--hidden=128", "--eval-every=1000", threads}
		const within = 3
		var ratios []string
		agreed := false
		for try := 0; try < 3 && !agreed; try++ {
			p := planned(t, append(args, "--servers=1")...).Plans[0]
			r := call(t, dir, nil, append(args, "--epochs=10", "--json")...)
			var run sink.Summary
			if err := json.Unmarshal([]byte(r.out), &run); err != nil {
				t.Fatalf("%v\n%s", err, r.err)
			}
			plan, took := 0.0, 0.0
			for name, s := range p.TaskSeconds {
				if !strings.HasPrefix(name, "eval") {
					plan += s
				}
			}
			for name, s := range run.TaskSeconds {
				if !strings.HasPrefix(name, "eval") {
					took += float64(s) / 10
				}
			}
			speed, memory := plan/took, float64(p.Memory.Total)/float64(run.PeakMemory)
			ratios = append(ratios, fmt.Sprintf("%.2f (memory %.2f)", speed, memory))
			agreed = speed > 1.0/within && speed < within && memory > 0.5 && memory < 2
		}
		t.Logf("%s: planned by measured: %v", threads, ratios)
		if !agreed {
			t.Errorf("%s: planned by measured seconds of tasks are %v, want within a factor of %d", threads, ratios, within)
		}
	}
}
