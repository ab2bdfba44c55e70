//go:build cgo && amd64 && linux

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// work is a training that all contestants do.
type work struct {
	Name string
	// Data is what prepare is given; a name of the reference data is a folder there.
	Data, Split string
	Flags       []string
	// Epochs of a run, by contestant: enough for a median, and for slow peers few.
	Epochs, PeerEpochs int
	// Whole says that what counts is the whole process, from launch to result.
	Whole bool
	Goals map[string]float64 // by peer: how many times as fast
}

// maxMemory is the goal of the engine's peak memory, as a share of the leaner peer's.
const maxMemory = 0.6

const (
	redditSized = "synth:sbm,vertices=233000,degree=490,classes=41,features=602,seed=1"
	amazonSized = "synth:rmat,vertices=1000000,degree=35,classes=25,features=300,seed=1"
	large       = "random:66/10/24"
)

// works are all of them; dropout of inputs is off, as in the paper's runs, and
// evaluations are left to the end.
var works = []work{
	{Name: "gcn-reddit", Data: redditSized, Split: large, Flags: flags("gcn", "--hidden=128"), Epochs: 6, PeerEpochs: 2, Goals: map[string]float64{"dgl": 3, "pyg": 8}},
	{Name: "sage-reddit", Data: redditSized, Split: large, Flags: flags("sage", "--hidden=128"), Epochs: 6, PeerEpochs: 2, Goals: map[string]float64{"dgl": 3}},
	{Name: "gat-reddit", Data: redditSized, Split: large, Flags: flags("gat", "--hidden=8", "--heads=8", "--dropout=0", "--attention-dropout=0"), Epochs: 3, PeerEpochs: 2, Goals: map[string]float64{"dgl": 4}},
	{Name: "gin-reddit", Data: redditSized, Split: large, Flags: flags("gin", "--hidden=128"), Epochs: 6, PeerEpochs: 2, Goals: map[string]float64{"dgl": 3}},
	{Name: "gcn-amazon", Data: amazonSized, Split: large, Flags: flags("gcn", "--hidden=128"), Epochs: 6, PeerEpochs: 2, Goals: map[string]float64{"dgl": 2.5}},
	{Name: "gcn-cora", Data: "cora", Flags: small("gcn"), Whole: true, Goals: both(4)},
	{Name: "gat-cora", Data: "cora", Flags: small("gat"), Whole: true, Goals: both(4)},
	{Name: "gcn-citeseer", Data: "planetoid-citeseer", Flags: small("gcn"), Whole: true, Goals: both(4)},
	{Name: "gat-citeseer", Data: "planetoid-citeseer", Flags: small("gat"), Whole: true, Goals: both(4)},
	{Name: "gcn-coauthor-cs", Data: "coauthor-cs", Split: "random:60/20/20", Flags: small("gcn"), Whole: true, Goals: both(4)},
	{Name: "gat-coauthor-cs", Data: "coauthor-cs", Split: "random:60/20/20", Flags: small("gat"), Whole: true, Goals: both(4)},
}

func both(x float64) map[string]float64 { return map[string]float64{"dgl": x, "pyg": x} }

// flags are those of a large graph.
func flags(model string, more ...string) []string {
	return append([]string{"--model=" + model, "--input-dropout=0", "--eval-every=1000000", "--seed=1"}, more...)
}

// small are 200 epochs as the models' papers train them, evaluated every tenth.
func small(model string) []string {
	return []string{"--model=" + model, "--epochs=200", "--eval-every=10", "--seed=1"}
}

// synthetic says that the graph is made, not read.
func (w *work) synthetic() bool { return strings.HasPrefix(w.Data, "synth:") }

// scaled is the work on a made graph of fewer edges.
func (w work) scaled(edges float64) work {
	if !w.synthetic() || edges == 1 {
		return w
	}
	parts := strings.Split(w.Data, ",")
	for i, p := range parts {
		if text, ok := strings.CutPrefix(p, "degree="); ok {
			degree, _ := strconv.ParseFloat(text, 64)
			parts[i] = fmt.Sprintf("degree=%.0f", max(1, degree*edges))
		}
	}
	w.Data = strings.Join(parts, ",")
	return w
}

// pick are the works of these names, all for none.
func pick(names string) (out []work, unknown []string) {
	if names == "" {
		return works, nil
	}
	for _, n := range strings.Split(names, ",") {
		found := false
		for _, w := range works {
			if w.Name == n {
				out, found = append(out, w), true
			}
		}
		if !found {
			unknown = append(unknown, n)
		}
	}
	return out, unknown
}

func names() string {
	var all []string
	for _, w := range works {
		all = append(all, w.Name)
	}
	return strings.Join(all, ", ")
}
