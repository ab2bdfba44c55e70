package member

import (
	"strings"
	"testing"
)

func TestExpandNodes(t *testing.T) {
	for list, want := range map[string]string{
		"login":                        "login",
		"a,b,c":                        "a b c",
		"n[1-3]":                       "n1 n2 n3",
		"n[01-03,7]":                   "n01 n02 n03 n7",
		"n[9-11]":                      "n9 n10 n11",
		"n[098-102]":                   "n098 n099 n100 n101 n102",
		"n[5,3-4]":                     "n5 n3 n4",
		"gpu[1-2],cpu-[03-04].x,login": "gpu1 gpu2 cpu-03.x cpu-04.x login",
		"r[1-2]n[1-2]":                 "r1n1 r1n2 r2n1 r2n2",
		"r[1-2]-[08-09]-x":             "r1-08-x r1-09-x r2-08-x r2-09-x",
		"a[1],b[2-2]":                  "a1 b2",
		"ip-10-0-0-[4,17]":             "ip-10-0-0-4 ip-10-0-0-17",
		"dy-c5n[0000-0001]-st":         "dy-c5n0000-st dy-c5n0001-st",
	} {
		got, err := ExpandNodes(list)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s gives %v (%v), want %s", list, got, err, want)
		}
	}
	for list, want := range map[string]string{
		"":                        "empty",
		"a,,b":                    "empty",
		"a[1-2":                   "does not close",
		"a1-2]":                   "not open",
		"a[[1]]":                  "bracket in a bracket",
		"a[]":                     `"" is no number`,
		"a[3-1]":                  "downwards",
		"a[1-x]":                  "no number or range",
		"a[1-2-3]":                "no number or range",
		"a[-1]":                   "no number or range",
		"a[1-99999999]":           "more than",
		"a[1-60000]b[1-60000]":    "more than",
		"a[1-40000],b[1-40000]":   "more than 65536 nodes",
		"a[99999999999999999999]": "no number or range",
	} {
		got, err := ExpandNodes(list)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %d names, error %v; want %q", list, len(got), err, want)
		}
	}
}

// Whatever the list is, it is expanded to few names or refused.
func FuzzExpandNodes(f *testing.F) {
	for _, s := range []string{"n[1-3,07]", "a[1]b[2-3],c", "[[", "a[0-65535]", "x[1-2]]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		names, err := ExpandNodes(list)
		if err == nil && (len(names) == 0 || len(names) > maxServers) {
			t.Errorf("%q gives %d names", list, len(names))
		}
	})
}
