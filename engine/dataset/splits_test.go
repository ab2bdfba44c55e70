package dataset

import (
	"slices"
	"strings"
	"testing"
)

// roundRobin labels n vertices 0,1,...,classes-1,0,...
func roundRobin(n, classes int) []int32 {
	labels := make([]int32, n)
	for v := range labels {
		labels[v] = int32(v % classes)
	}
	return labels
}

func TestMakeSplitSizes(t *testing.T) {
	labels := roundRobin(3000, 3)
	labels[7], labels[8] = -1, -1
	for _, tc := range []struct {
		spec             string
		train, val, test int
	}{
		{"planetoid", 60, 500, 1000},
		{"per-class:20/30", 60, 90, 2848},
		{"per-class:5/0", 15, 0, 2983},
		{"random:60/20/20", 1799, 599, 600},
		{"random:100/0/0", 2998, 0, 0},
	} {
		s, err := MakeSplit(tc.spec, labels, 3, 7)
		if err != nil {
			t.Errorf("%s: %v", tc.spec, err)
			continue
		}
		if len(s.Train) != tc.train || len(s.Val) != tc.val || len(s.Test) != tc.test {
			t.Errorf("%s: %d/%d/%d, want %d/%d/%d", tc.spec, len(s.Train), len(s.Val), len(s.Test), tc.train, tc.val, tc.test)
		}
		r := &Raw{N: len(labels), Labels: labels, Splits: []Split{s}}
		c := &checker{r: r}
		c.splits()
		if err := Fatal(c.found); err != nil {
			t.Errorf("%s: %v", tc.spec, err)
		}
		again, _ := MakeSplit(tc.spec, labels, 3, 7)
		other, _ := MakeSplit(tc.spec, labels, 3, 8)
		if !slices.Equal(s.Train, again.Train) || !slices.Equal(s.Test, again.Test) {
			t.Errorf("%s: the same seed gave another split", tc.spec)
		}
		if tc.test > 0 && slices.Equal(s.Test, other.Test) {
			t.Errorf("%s: another seed gave the same split", tc.spec)
		}
		if !slices.IsSorted(s.Train) || !slices.IsSorted(s.Test) {
			t.Errorf("%s: not ascending", tc.spec)
		}
	}
}

func TestMakeSplitPerClassTakesThatManyOfEach(t *testing.T) {
	labels := roundRobin(100, 4)
	s, err := MakeSplit("per-class:3/2", labels, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range []int{3, 2} {
		count := make([]int, 4)
		for _, v := range *s.role(r) {
			count[labels[v]]++
		}
		if !slices.Equal(count, slices.Repeat([]int{want}, 4)) {
			t.Errorf("%s: %v of each class, want %d", roleNames[r], count, want)
		}
	}
}

func TestMakeSplitRefuses(t *testing.T) {
	for _, tc := range []struct{ spec, want string }{
		{"per-class:20/30", "class 0 has 34 labelled vertices, 50 are needed"},
		{"planetoid", "40 labelled vertices remain"},
		{"random:60/20/10", "90 per cent"},
		{"random:60/20", "is not 3 numbers"},
		{"random:x/20/20", `"x"`},
		{"per-class:0/5", `"0"`},
		{"per-clas:20/30", `did you mean "per-class"`},
		{"", "unknown kind"},
		{"random:99/1/0", ""},
		{"planetoid:3", "takes no numbers"},
	} {
		_, err := MakeSplit(tc.spec, roundRobin(100, 3), 3, 1)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%q: %v", tc.spec, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: got %v, want %q in it", tc.spec, err, tc.want)
		}
	}
	if _, err := MakeSplit("random:60/20/20", []int32{-1, -1}, 0, 1); err == nil || !strings.Contains(err.Error(), "no vertex has a label") {
		t.Errorf("unlabelled: %v", err)
	}
	if _, err := MakeSplit("random:60/20/20", []int32{0, 5}, 3, 1); err == nil || !strings.Contains(err.Error(), "label 5") {
		t.Errorf("label out of range: %v", err)
	}
}
