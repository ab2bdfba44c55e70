package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// synthSpec is a parsed "synth:KIND,key=value,...".
type synthSpec struct {
	kind     string // rmat, sbm
	n        int
	degree   float64 // directed in-edges per vertex, on average
	classes  int
	features int
	seed     uint64
	intra    float64 // share of edges whose ends are meant to have the same class
	noise    float64 // standard deviation of a feature
	labelled float64 // share of vertices with a label
}

// synthKeys are the keys of each kind.
var synthKeys = map[string][]string{
	"rmat": {"scale", "degree", "features", "classes", "seed", "intra", "noise", "labelled"},
	"sbm":  {"vertices", "degree", "features", "classes", "seed", "intra", "noise", "labelled"},
}

const synthHelp = "such as synth:sbm,vertices=10000,degree=20,classes=8,features=64,seed=1 or synth:rmat,scale=16,degree=16"

func isSynth(src string) bool { return src == "synth" || strings.HasPrefix(src, "synth:") }

// Synth makes a graph of any size with labels that can be learnt:
//
//	synth:sbm,vertices=N,degree=D,classes=C,features=F,seed=S,intra=0.8,noise=1,labelled=1
//	synth:rmat,scale=K,degree=D,classes=C,features=F,seed=S,intra=0.6,noise=1,labelled=1
//
// sbm is a degree-corrected block model: degrees follow a power law of exponent 3
// from D/2 to about 25·D, and intra is the share of edges drawn within a class. rmat
// has 2^K vertices, the quadrant probabilities 0.57, 0.19, 0.19 and 0.05 of Graph500,
// and every vertex has an edge. Both are undirected without loops or repeats: N·D/2
// records are N·D directed edges. Vertices are numbered at random.
//
// A feature is the coordinate of the class's centroid plus noise. Centroids are 3
// noises apart where noise is 1, so that features alone leave many vertices
// undecided while the mean over neighbours decides most. The split of the labelled
// vertices is random, 66 % to train, 10 % to validate, 24 % to test.
//
// The same spec gives the same bits on every machine and any number of cores.
func Synth(ctx context.Context, spec string) (*Raw, error) {
	s, err := parseSynth(spec)
	if err == nil {
		err = s.feasible()
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", clip(spec), err)
	}
	raw, err := s.generate(ctx)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", clip(spec), err)
	}
	raw.Files = []string{spec}
	return raw, nil
}

func parseSynth(spec string) (s synthSpec, err error) {
	_, rest, _ := strings.Cut(spec, ":")
	parts := strings.Split(rest, ",")
	s = synthSpec{kind: parts[0], degree: 16, classes: 8, features: 64, seed: 1, intra: 0.8, noise: 1, labelled: 1}
	keys, ok := synthKeys[s.kind]
	if !ok {
		return s, fmt.Errorf("kind %q is neither sbm nor rmat%s; write it %s", s.kind, suggest(s.kind, []string{"sbm", "rmat"}), synthHelp)
	}
	if s.kind == "rmat" {
		s.intra = 0.6
	}
	given := map[string]bool{}
	for _, p := range parts[1:] {
		key, value, ok := strings.Cut(p, "=")
		switch {
		case !ok:
			return s, fmt.Errorf("%q is not key=value; write it %s", p, synthHelp)
		case !slices.Contains(keys, key):
			return s, fmt.Errorf("unknown key %q%s; %s takes %s", key, suggest(key, keys), s.kind, strings.Join(keys, ", "))
		case given[key]:
			return s, fmt.Errorf("%s is given twice", key)
		}
		given[key] = true
		if err := s.set(key, value); err != nil {
			return s, err
		}
	}
	if s.n == 0 {
		return s, fmt.Errorf("%s is missing; write it %s", keys[0], synthHelp)
	}
	return s, nil
}

// set takes one value, checked against its own range.
func (s *synthSpec) set(key, value string) (err error) {
	whole := func(lo, hi int) (int, error) {
		v, err := strconv.Atoi(value)
		if err != nil || v < lo || v > hi {
			return 0, fmt.Errorf("%s=%s: it is a whole number in [%d,%d]", key, clip(value), lo, hi)
		}
		return v, nil
	}
	real := func(lo, hi float64) (float64, error) {
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= lo && v <= hi) {
			return 0, fmt.Errorf("%s=%s: it is a number in [%v,%v]", key, clip(value), lo, hi)
		}
		return v, nil
	}
	switch key {
	case "vertices":
		s.n, err = whole(2, maxVertices)
	case "scale":
		var scale int
		scale, err = whole(1, 30)
		s.n = 1 << scale
	case "degree":
		s.degree, err = real(0.01, 1e6)
	case "classes":
		s.classes, err = whole(1, maxClasses)
	case "features":
		s.features, err = whole(0, 1<<20)
	case "seed":
		if s.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			err = fmt.Errorf("seed=%s: it is a whole number from 0", clip(value))
		}
	case "intra":
		s.intra, err = real(0, 1)
	case "noise":
		s.noise, err = real(0, 1e6)
	case "labelled":
		s.labelled, err = real(0, 1)
	}
	return err
}

// feasible refuses graphs that do not exist or would be nearly complete.
func (s synthSpec) feasible() error {
	if s.classes > s.n {
		return fmt.Errorf("%d classes for %d vertices; each needs at least one", s.classes, s.n)
	}
	if s.degree > float64(s.n)/4 {
		return fmt.Errorf("degree %v with %d vertices is too dense; at most a quarter of the vertices can be neighbours", s.degree, s.n)
	}
	if size := float64(s.n / s.classes); s.intra > 0 && s.degree*s.intra > size/3 {
		return fmt.Errorf("a vertex would have %.0f neighbours among the %.0f of its class, at most a third fits; use fewer classes, a smaller degree or a smaller intra", s.degree*s.intra, size)
	}
	return nil
}

// Streams of random numbers, one for each purpose.
const (
	streamOrder = iota + 10
	streamWeights
	streamLabelled
	streamSplit
	streamCentroids
	streamFeatures
	streamEdges
)

func (s synthSpec) generate(ctx context.Context) (*Raw, error) {
	raw := &Raw{Name: fmt.Sprintf("synth-%s-%d", s.kind, s.n), Format: "synth", N: s.n, Undirected: true}
	perm := make([]int32, s.n) // the user's number of each vertex of the model
	for v := range perm {
		perm[v] = int32(v)
	}
	newRNG(s.seed, streamOrder).shuffle(perm)
	draw, class := s.rmat()
	if s.kind == "sbm" {
		draw, class = s.sbm()
	}
	class = relabel(class, perm)
	records := int(math.Round(float64(s.n) * s.degree / 2))
	if err := s.edges(ctx, raw, records, perm, draw); err != nil {
		return nil, err
	}
	if s.features > 0 {
		if err := s.fillFeatures(ctx, raw, class); err != nil {
			return nil, err
		}
	}
	return raw, s.labels(raw, class)
}

// relabel is class in the user's numbering.
func relabel(class, perm []int32) []int32 {
	out := make([]int32, len(class))
	for v, u := range perm {
		out[u] = class[v]
	}
	return out
}

// labels hides labels and draws the split.
func (s synthSpec) labels(raw *Raw, class []int32) error {
	raw.Labels = class
	if hide := s.n - int(math.Round(s.labelled*float64(s.n))); hide > 0 {
		ids := make([]int32, s.n)
		for v := range ids {
			ids[v] = int32(v)
		}
		newRNG(s.seed, streamLabelled).shuffle(ids)
		for _, v := range ids[:hide] {
			class[v] = -1
		}
	}
	raw.Classes = numberedFrom(0, s.classes)
	if s.labelled == 0 {
		return nil
	}
	split, err := MakeSplit("random:66/10/24", class, s.classes, newRNG(s.seed, streamSplit).next())
	if err != nil {
		return err
	}
	raw.Splits = []Split{split}
	return nil
}
