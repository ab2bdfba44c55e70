package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hashes are what a run has ended with.
type hashes struct {
	Weights     string `json:"weights_sha256"`
	Predictions string `json:"predictions_sha256"`
}

func (r *run) hashes() hashes { return hashes{r.summary.Weights, r.summary.Predictions} }

// bitsRow is a run on several servers, beside one process with the same flags.
type bitsRow struct {
	Data    string `json:"data"`
	Model   string `json:"model"`
	Mode    string `json:"mode"`
	Graphs  int    `json:"graph_servers"`
	Params  int    `json:"parameter_servers"`
	Resumed *set   `json:"resumed_from,omitempty"` // on which the first half was made; 0 servers: one process
	Epochs  int    `json:"epochs"`
	Want    hashes `json:"one_process"`
	Got     hashes `json:"servers"`
	Same    bool   `json:"same"`
}

func (b *bitsRow) what() string {
	what := fmt.Sprintf("%s, %s, %s", b.Data, b.Model, b.Mode)
	if b.Resumed != nil {
		what += ", resumed"
	}
	return what
}

func (b *bitsRow) sets() string {
	to := fmt.Sprintf("%dx%d", b.Graphs, b.Params)
	if b.Resumed != nil {
		return fmt.Sprintf("%dx%d→%s", b.Resumed.Graphs, b.Resumed.Params, to)
	}
	return to
}

// A subject is what is trained, by one process and by many.
type subject struct {
	data, store string
	model       string
	flags       []string
	epochs      int
}

func (s subject) args(epochs int, more ...string) []string {
	return append(append([]string{"--data=" + s.store, fmt.Sprintf("--epochs=%d", epochs)}, s.flags...), more...)
}

var models = []struct {
	name  string
	flags []string
}{
	{"gcn", nil},
	{"gat", []string{"--model=gat"}},
	{"sage mean", []string{"--model=sage"}},
	{"sage max", []string{"--model=sage", "--aggregator=max"}},
}

// crowd are the numbers of graph servers and of parameter servers that are tried.
var crowd, shards = []int{1, 2, 3, 4, 8}, []int{1, 2, 3}

// bits compares runs on all kinds of sets with one process. Cora's GCN has every pair of
// numbers; the others have every number of graph servers, and every number of parameter
// servers among them. The maximum is taken of all 6,805 features of Coauthor CS, which is
// slow, and tried there once.
func (r *report) bits(l *lab) error {
	cs, err := l.stored("coauthor-cs", "coauthor-cs/ms_academic_cs.npz")
	if err != nil {
		return err
	}
	cora, err := l.prepare("cora", "cora")
	if err != nil {
		return err
	}
	turn := 0
	for i, m := range models {
		for _, s := range []subject{{"cora", cora, m.name, m.flags, 10}, {"coauthor-cs", cs, m.name, m.flags, 4}} {
			var sets []set
			for _, n := range crowd {
				for k, p := range shards {
					if i == 0 && s.data == "cora" || k == turn%len(shards) {
						sets = append(sets, set{n, p})
					}
				}
				turn++
			}
			if m.name == "sage max" && s.data != "cora" {
				s.epochs = 2
				if err := r.compare(l, s, "cpu", []set{{4, 2}}); err != nil {
					return err
				}
				continue
			}
			if err := r.compare(l, s, "cpu", sets); err != nil {
				return err
			}
			if err := r.resumed(l, s, []set{{4, 2}, {4, 1}, {}}, []set{{3, 3}, {3, 2}, {4, 2}}); err != nil {
				return err
			}
			if err := r.compare(l, s, "lambda", []set{{2 + i%3, 1 + i%3}}, "--mode=lambda", "--lambdas=2"); err != nil {
				return err
			}
		}
	}
	return r.odd(l, cora)
}

// stored is the prepared store of a set of the reference data, with its splits.
func (l *lab) stored(name, file string) (string, error) {
	return l.prepare(name, filepath.Join(l.reference, "data", file), "--split-file="+filepath.Join(l.reference, "golden/splits", name+".json"))
}

// alone trains by one process, once.
func (l *lab) alone(s subject) (*run, error) {
	key := strings.Join(s.args(s.epochs), " ")
	if r := l.single[key]; r != nil {
		return r, nil
	}
	r, err := l.train(set{}, s.args(s.epochs)...)
	if err != nil {
		return nil, err
	}
	if l.single == nil {
		l.single = map[string]*run{}
	}
	l.single[key] = r
	return r, nil
}

// compare trains on each set, and by one process in CPU mode.
func (r *report) compare(l *lab, s subject, mode string, sets []set, flags ...string) error {
	want, err := l.alone(s)
	if err != nil {
		return err
	}
	for _, servers := range sets {
		got, err := l.train(servers, s.args(s.epochs, flags...)...)
		if err != nil {
			return err
		}
		r.judge(bitsRow{Data: s.data, Model: s.model, Mode: mode, Graphs: servers.Graphs, Params: servers.Params, Epochs: s.epochs}, want, got)
	}
	return nil
}

// resumed trains half of the epochs on each set of from, and goes on on the one of to.
func (r *report) resumed(l *lab, s subject, from, to []set) error {
	want, err := l.alone(s)
	if err != nil {
		return err
	}
	for i := range from {
		half, err := l.train(from[i], s.args(s.epochs/2)...)
		if err != nil {
			return err
		}
		got, err := l.train(to[i], fmt.Sprintf("--epochs=%d", s.epochs), "--resume="+half.folder)
		if err != nil {
			return err
		}
		r.judge(bitsRow{Data: s.data, Model: s.model, Mode: "cpu", Graphs: to[i].Graphs, Params: to[i].Params, Resumed: &from[i], Epochs: s.epochs}, want, got)
	}
	return nil
}

func (r *report) judge(b bitsRow, want, got *run) {
	b.Want, b.Got = want.hashes(), got.hashes()
	b.Same = b.Want == b.Got && len(b.Want.Weights) == 64 && len(b.Want.Predictions) == 64
	r.Bits = append(r.Bits, b)
	note := ""
	if !b.Same {
		note = fmt.Sprintf("weights %.12s… and %.12s…, predictions %.12s… and %.12s…", b.Want.Weights, b.Got.Weights, b.Want.Predictions, b.Got.Predictions)
	}
	r.holds("bits", fmt.Sprintf("%s on %s: the same bits", b.what(), b.sets()), b.Same, note)
}

// odd tries partitions that are not like others: without training vertices, without
// blocks, without ghosts.
func (r *report) odd(l *lab, cora string) error {
	sparse, err := l.sparse()
	if err != nil {
		return err
	}
	islands, err := l.islands()
	if err != nil {
		return err
	}
	for _, x := range []struct {
		what  string
		s     subject
		n     int
		all   bool // of the partitions, or one of them
		lacks func(p partition) bool
	}{
		{what: "training vertices", s: subject{"cora, 3 training vertices", sparse, "gcn", nil, 4}, n: 8, lacks: func(p partition) bool { return p.Train == 0 }},
		{what: "ghosts", s: subject{"islands", islands, "gcn", nil, 4}, n: 4, all: true, lacks: func(p partition) bool { return p.GhostsForward+p.GhostsBackward == 0 }},
		{what: "blocks", s: subject{"cora", cora, "gat", []string{"--model=gat"}, 2}, n: 25, lacks: func(p partition) bool { return p.Blocks == 0 }},
	} {
		cut, err := l.cut(x.s.store, x.n)
		if err != nil {
			return err
		}
		without := 0
		for _, p := range cut.Parts {
			if x.lacks(p) {
				without++
			}
		}
		bar := 1
		if x.all {
			bar = x.n
		}
		r.least("odd", fmt.Sprintf("%s, %d graph servers: partitions without %s", x.s.data, x.n, x.what), float64(without), float64(bar), "")
		if err := r.compare(l, x.s, "cpu", []set{{x.n, 2}}); err != nil {
			return err
		}
	}
	return nil
}

// sparse is Cora with a training vertex here and there.
func (l *lab) sparse() (string, error) {
	split := map[string][]int{"train": {0, 900, 1800}}
	for v := 1; v < 400; v++ {
		split["val"] = append(split["val"], v)
		split["test"] = append(split["test"], v+400)
	}
	text, err := json.Marshal(split)
	if err != nil {
		return "", err
	}
	file := filepath.Join(l.folder, "sparse.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", err
	}
	return l.prepare("sparse", "cora", "--split-file="+file)
}

// islands is a graph whose blocks have no edges to each other: 16 blocks of 256 vertices
// in the order of the file, each a ring with chords.
func (l *lab) islands() (string, error) {
	const blocks, size = 16, 256
	var edges, labels, features strings.Builder
	for v := range blocks * size {
		base, at := v/size*size, v%size
		for _, step := range []int{1, 7, 31} {
			fmt.Fprintf(&edges, "%d,%d\n", v, base+(at+step)%size)
		}
		fmt.Fprintf(&labels, "%d\n", v%4)
		fmt.Fprintf(&features, "%d,%d,%d\n", v%4, v%7, v%11)
	}
	for name, text := range map[string]string{"edges.csv": edges.String(), "labels.csv": labels.String(), "features.csv": features.String()} {
		if err := os.WriteFile(filepath.Join(l.folder, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	in := func(name string) string { return filepath.Join(l.folder, name) }
	return l.prepare("islands", in("edges.csv"), "--labels-file="+in("labels.csv"), "--features-file="+in("features.csv"),
		"--direction=undirected", "--order=natural", "--split=random:60/20/20")
}
