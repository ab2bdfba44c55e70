package main

import (
	"math"
	"strings"
	"testing"

	"dorylus/engine/order"
	"dorylus/engine/store"
)

func TestPreparePartitions(t *testing.T) {
	dir := t.TempDir()
	const graph = "synth:sbm,vertices=2000,degree=8,classes=4,features=4"
	r := call(t, dir, nil, "prepare", graph, "-o", "s", "--partitions=3")
	if r.code != exitDone || !strings.HasPrefix(r.err, "order: ") || !strings.Contains(r.err, "beside the graph") {
		t.Fatalf("exit %d; the estimate must come first\n%s", r.code, r.err)
	}
	for _, text := range []string{"the smallest cut between 3 servers: natural ", "Partitions: 3, balanced by edges, bytes and the training vertices of split", "Cut: ", "times the average edges", "Ghost rows: "} {
		if !strings.Contains(r.out, text) {
			t.Errorf("%q is missing in\n%s", text, r.out)
		}
	}
	// The store remembers, and check repeats it or counts anew.
	same := mustRun(t, dir, "check", "s")
	if table := between(r.out, "Partitions: ", "Ghost rows"); table == "" || !strings.Contains(same, table) {
		t.Errorf("check does not say what prepare said:\n%s", same)
	}
	again := object(t, mustRun(t, dir, "check", "s", "--partitions=40", "--json"))
	parts := again["partitions"].(map[string]any)["parts"].([]any)
	rows, empty := 0.0, 0
	for _, p := range parts {
		n := p.(map[string]any)["rows"].(float64)
		rows += n
		if n == 0 {
			empty++
		}
	}
	if len(parts) != 40 || rows != 2000 || empty != 40-16 {
		t.Errorf("40 partitions of 16 blocks: %d with %v rows, %d of them empty", len(parts), rows, empty)
	}
	j := object(t, mustRun(t, dir, "prepare", graph, "-o", "j", "--partitions=2", "--json"))
	if p := j["partitions"].(map[string]any); len(p["parts"].([]any)) != 2 || p["ghost_bytes"].(float64) <= 0 {
		t.Errorf("partitions are %v", p)
	}
	if out := mustRun(t, dir, "prepare", graph, "-o", "n"); strings.Contains(out, "Partitions") {
		t.Errorf("partitions that nobody asked for:\n%s", out)
	}
}

// Smaller blocks are more of them, for more intervals and servers, and train the same model
// to rounding.
func TestBlockRows(t *testing.T) {
	dir := t.TempDir()
	const graph = "synth:sbm,vertices=2000,degree=8,classes=4,features=4"
	losses := map[string]float64{}
	for name, size := range map[string]string{"auto": "0", "small": "16", "one": "2000"} {
		mustRun(t, dir, "prepare", graph, "-o", name, "--block-rows="+size)
		run := object(t, mustRun(t, dir, "--data="+name, "--epochs=3", "--intervals=40", "--json"))
		losses[name] = run["loss"].(float64)
		if want := map[string]float64{"auto": 16, "small": 40, "one": 1}[name]; run["intervals"] != want {
			t.Errorf("%s blocks: %v intervals, want %v", name, run["intervals"], want)
		}
	}
	for name, loss := range losses {
		if math.Abs(loss-losses["auto"]) > 1e-5 {
			t.Errorf("%s blocks: loss %v, %v with those by the size", name, loss, losses["auto"])
		}
	}
	parts := object(t, mustRun(t, dir, "check", "small", "--partitions=100", "--json"))["partitions"].(map[string]any)["parts"].([]any)
	for rank, p := range parts {
		if p.(map[string]any)["rows"] == 0.0 {
			t.Errorf("server %d of 100 has none of 125 blocks", rank)
		}
	}
}

func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}

func TestPartitionsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"prepare cora -o s --partitions=-1":              "-1 partitions: use 0 for none, or 1 to",
		"prepare cora -o s --partitions=two":             "--partitions=two: give a whole number",
		"prepare cora -o s --as=distdgl --partitions=2":  "--partitions=2: --as=distdgl is cut by DGL's tools",
		"prepare cora -o s --block-rows=100":             "blocks of 100 rows: use 0 for a size by the number of vertices, or a multiple of 16",
		"prepare cora -o s --as=distdgl --block-rows=16": "--block-rows=16: --as=distdgl has no blocks",
		"check cora --partitions=2":                      "--partitions=2: give 1 or more, for a store",
	} {
		wantFailure(t, call(t, dir, nil, strings.Fields(args)...), exitUsage, want)
	}
}

func TestPartitionTexts(t *testing.T) {
	m := &store.PartitionsMeta{CutEdges: 3, CutFraction: 0.25, GhostBytes: 20, Parts: []store.PartitionMeta{
		{Blocks: 1, Rows: 16, Edges: 30, Bytes: 3e6, GhostsForward: 1, GhostsBackward: 2, CutIn: 1, CutOut: 2, GhostBytes: 12},
		{FirstBlock: 1, Blocks: 2, Rows: 20, Edges: 10, Bytes: 1e6, GhostsForward: 1, GhostsBackward: 1, CutIn: 2, CutOut: 1, GhostBytes: 8},
	}}
	text := partitionsText(m)
	for _, want := range []string{"Partitions: 2, balanced by edges and bytes\n", "Cut: 3 edges, 25.0 % of all. The largest partition has 1.50 times the average edges, 1.11 times rows, 1.50 times bytes\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	got := estimateText([]order.Estimate{{Method: "lpa", Bytes: 2e6, Seconds: 0.5}, {Method: "metis", Bytes: 3e9, Seconds: 100, Refused: "too big"}})
	if want := "order: lpa (estimated at 0.5 s and 2 MB beside the graph), not metis (estimated at 100 s and 3.0 GB beside the graph: too big)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
