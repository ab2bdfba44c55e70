package rpc

import (
	"net/url"
	"testing"
)

func TestNamesComeBack(t *testing.T) {
	for _, w := range []Who{
		{"dorylus.local/dev", Graph, 0}, {"a", Param, 17}, {"prod.example/team/run-7", Graph, AnyRank}, {"x/graph", Graph, 2147483647},
	} {
		u, err := w.URI()
		if err != nil {
			t.Errorf("%+v: %v", w, err)
			continue
		}
		if got, err := ParseWho(u); err != nil || got != w {
			t.Errorf("%s reads as %+v, %v, want %+v", u, got, err, w)
		}
	}
}

func TestParseWhoRefuses(t *testing.T) {
	for _, s := range []string{
		"https://a/graph/0", "spiffe://a", "spiffe://a/", "spiffe://a/0", "spiffe://a/king/0", "spiffe://a/graph/01", "spiffe://a/graph/99999999999",
		"spiffe://a//graph/0", "spiffe://a/../graph/0", "spiffe://a:1/graph/0", "spiffe://u@a/graph/0", "spiffe://a/graph/0?x", "spiffe://a/graph/0#x",
		"spiffe://a/graph/0/", "spiffe://a/b%20c/graph/0", "spiffe:///graph/0",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := ParseWho(u); err == nil {
			t.Errorf("%s reads as %+v", s, w)
		}
	}
}

func FuzzParseWho(f *testing.F) {
	f.Add("spiffe://a/b/graph/3")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(s)
		if err != nil {
			return
		}
		w, err := ParseWho(u)
		if err != nil {
			return
		}
		back, err := w.URI()
		if err != nil {
			t.Fatalf("%q reads as %+v, which has no name: %v", s, w, err)
		}
		if again, err := ParseWho(back); err != nil || again != w {
			t.Errorf("%q reads as %+v, and %s as %+v, %v", s, w, back, again, err)
		}
	})
}
