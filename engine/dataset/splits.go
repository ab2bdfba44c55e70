package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Sizes of the public Planetoid splits.
const (
	planetoidTrain = 20 // per class
	planetoidVal   = 500
	planetoidTest  = 1000
)

// splitSpecs is what MakeSplit accepts, for messages.
const splitSpecs = "planetoid, per-class:TRAIN/VAL (such as per-class:20/30) or random:TRAIN/VAL/TEST in per cent (such as random:60/20/20)"

// MakeSplit draws a split of the labelled vertices:
//
//   - planetoid: 20 vertices per class to train; of the others 500 validate, 1000 test;
//   - per-class:T/V: T per class to train, V per class to validate, all others test;
//   - random:A/B/C: A, B and C per cent, adding up to 100.
//
// labels holds the class of each vertex in the user's order, -1 where it has none.
// The same arguments give the same split everywhere. Classes without any vertex are
// passed over; one with too few is an error that says how many it has and needs.
func MakeSplit(spec string, labels []int32, classes int, seed uint64) (Split, error) {
	s, err := makeSplit(spec, labels, classes, seed)
	if err != nil {
		return Split{}, fmt.Errorf("make split %q: %w", spec, err)
	}
	s.Name = spec
	for r := range 3 {
		slices.Sort(*s.role(r))
	}
	return s, nil
}

func makeSplit(spec string, labels []int32, classes int, seed uint64) (Split, error) {
	kind, args, _ := strings.Cut(spec, ":")
	rest, byClass, err := shuffledClasses(labels, classes, newRNG(seed, 1))
	if err != nil {
		return Split{}, err
	}
	switch kind {
	case "planetoid":
		if args != "" {
			return Split{}, fmt.Errorf("planetoid takes no numbers; use per-class or random for other sizes")
		}
		s, rest, err := takePerClass(byClass, planetoidTrain, 0, newRNG(seed, 2))
		if err != nil {
			return s, err
		}
		if len(rest) < planetoidVal+planetoidTest {
			return s, fmt.Errorf("%d labelled vertices remain after training ones were drawn, %d are needed (%d to validate, %d to test); use random:60/20/20",
				len(rest), planetoidVal+planetoidTest, planetoidVal, planetoidTest)
		}
		s.Val, s.Test = rest[:planetoidVal], rest[planetoidVal:planetoidVal+planetoidTest]
		return s, nil
	case "per-class":
		n, err := numbers(args, 2)
		if err != nil {
			return Split{}, err
		}
		s, rest, err := takePerClass(byClass, n[0], n[1], newRNG(seed, 2))
		s.Test = rest
		if err == nil && len(rest) == 0 {
			err = fmt.Errorf("no labelled vertex is left to test; ask for fewer per class")
		}
		return s, err
	case "random":
		n, err := numbers(args, 3)
		if err != nil {
			return Split{}, err
		}
		if n[0]+n[1]+n[2] != 100 {
			return Split{}, fmt.Errorf("%d + %d + %d is %d per cent, not 100", n[0], n[1], n[2], n[0]+n[1]+n[2])
		}
		return takePercent(rest, n)
	}
	return Split{}, fmt.Errorf("unknown kind %q%s; use %s", kind, suggest(kind, []string{"planetoid", "per-class", "random"}), splitSpecs)
}

// randomSpec says whether spec draws without looking at classes.
func randomSpec(spec string) bool {
	kind, _, _ := strings.Cut(spec, ":")
	return kind == "random"
}

// shuffledClasses is the labelled vertices in random order, and those of each class.
func shuffledClasses(labels []int32, classes int, r *rng) (all []int32, byClass [][]int32, err error) {
	byClass = make([][]int32, classes)
	for v, c := range labels {
		if int(c) >= classes {
			return nil, nil, fmt.Errorf("vertex %d has label %d, but there are %d classes", v, c, classes)
		}
		if c >= 0 {
			all = append(all, int32(v))
		}
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("no vertex has a label; give labels, or splits as a file")
	}
	r.shuffle(all)
	for _, v := range all {
		byClass[labels[v]] = append(byClass[labels[v]], v)
	}
	return all, byClass, nil
}

// takePerClass takes train and val vertices of each class; rest is all others, shuffled.
func takePerClass(byClass [][]int32, train, val int, r *rng) (s Split, rest []int32, err error) {
	for c, ids := range byClass {
		if len(ids) == 0 {
			continue
		}
		if len(ids) < train+val {
			return s, nil, fmt.Errorf("class %d has %d labelled vertices, %d are needed (%d to train, %d to validate); ask for fewer, or use random:60/20/20",
				c, len(ids), train+val, train, val)
		}
		s.Train = append(s.Train, ids[:train]...)
		s.Val = append(s.Val, ids[train:train+val]...)
		rest = append(rest, ids[train+val:]...)
	}
	r.shuffle(rest)
	return s, rest, nil
}

// takePercent cuts ids by per cent, rounding to the nearest vertex.
func takePercent(ids []int32, percent []int) (Split, error) {
	cut := func(p int) int { return (len(ids)*p + 50) / 100 }
	a, b := cut(percent[0]), cut(percent[0]+percent[1])
	s := Split{Train: ids[:a], Val: ids[a:b], Test: ids[b:]}
	for i, p := range percent {
		if p > 0 && len(*s.role(i)) == 0 {
			return s, fmt.Errorf("%d per cent of %d labelled vertices is none to %s; ask for more", p, len(ids), [...]string{"train", "validate", "test"}[i])
		}
	}
	return s, nil
}

// numbers parses want numbers separated by slashes; the first must be above 0.
func numbers(args string, want int) ([]int, error) {
	fields := strings.Split(args, "/")
	if args == "" || len(fields) != want {
		return nil, fmt.Errorf("%q is not %d numbers with / between them; use %s", args, want, splitSpecs)
	}
	out := make([]int, want)
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 || n > maxVertices || i == 0 && n == 0 {
			return nil, fmt.Errorf("%q is not a number of vertices or per cent to be used here; use %s", f, splitSpecs)
		}
		out[i] = n
	}
	return out, nil
}
