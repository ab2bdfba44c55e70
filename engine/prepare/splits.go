package prepare

import (
	"fmt"
	"slices"

	"dorylus/engine/dataset"
	"dorylus/engine/store"
)

// countClasses is the number of classes: names given, or the largest label + 1.
func countClasses(raw *dataset.Raw) (int, error) {
	if raw.Labels == nil {
		return len(raw.Classes), nil
	}
	if len(raw.Labels) != raw.N {
		return 0, fmt.Errorf("%d labels for %d vertices", len(raw.Labels), raw.N)
	}
	top, at := int32(-1), 0
	for v, c := range raw.Labels {
		if c < -1 {
			return 0, fmt.Errorf("vertex %s has label %d: labels are 0 and up, or -1 for none", name(raw, v), c)
		}
		if c > top {
			top, at = c, v
		}
	}
	if n := len(raw.Classes); n > 0 {
		if int(top) >= n {
			return 0, fmt.Errorf("vertex %s has label %d, but there are %d classes, 0..%d", name(raw, at), top, n, n-1)
		}
		return n, nil
	}
	return int(top) + 1, nil
}

// name is the user's name of vertex v.
func name(raw *dataset.Raw, v int) string {
	if raw.IDs != nil {
		return fmt.Sprintf("%q", raw.IDs[v])
	}
	return fmt.Sprint(v)
}

// gatherSplits makes the splits in store rows and says where they come from.
func gatherSplits(s *store.Store, raw *dataset.Raw, classes int, opt Options) (spec string, err error) {
	splits := raw.Splits
	switch {
	case opt.Split != "":
		spec = opt.Split
		made, err := dataset.MakeSplit(opt.Split, raw.Labels, classes, opt.Seed)
		if err != nil {
			return "", err
		}
		splits = []dataset.Split{made}
	case len(splits) > 0:
		spec = "file"
	}
	role := make([]byte, raw.N)
	for _, sp := range splits {
		clear(role)
		out := dataset.Split{Name: sp.Name}
		for i, part := range []struct {
			role string
			from []int32
			to   *[]int32
		}{{"train", sp.Train, &out.Train}, {"val", sp.Val, &out.Val}, {"test", sp.Test, &out.Test}} {
			rows := make([]int32, len(part.from))
			for k, v := range part.from {
				if v < 0 || int(v) >= raw.N {
					return "", fmt.Errorf("split %q: %s vertex %d, but vertices are 0..%d", sp.Name, part.role, v, raw.N-1)
				}
				if r := role[v]; r != 0 {
					return "", fmt.Errorf("split %q: vertex %s is in %s and again in %s: give every vertex one role",
						sp.Name, name(raw, int(v)), []string{"", "train", "val", "test"}[r], part.role)
				}
				role[v] = byte(i + 1)
				rows[k] = s.Rank[v]
			}
			slices.Sort(rows)
			*part.to = rows
		}
		s.Splits = append(s.Splits, out)
		s.Meta.SplitNames = append(s.Meta.SplitNames, sp.Name)
	}
	return spec, nil
}
