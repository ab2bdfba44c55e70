package tuner

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestStart(t *testing.T) {
	for _, x := range []struct {
		c    Config
		want int
	}{
		{Config{Intervals: 7, Cores: 1}, 7},
		{Config{Intervals: 5000, Cores: 1}, MostAtStart},
		{Config{Intervals: 5000, Cores: 1, Max: 40}, 40},
		{Config{Intervals: 5, Cores: 1, Min: 9}, 9},
		{Config{Intervals: 64, Cores: 1, Start: 3}, 3},
		{Config{Intervals: 64, Cores: 1, Fixed: 200}, 200},
	} {
		tuner, err := New(x.c)
		if err != nil {
			t.Fatal(err)
		}
		if got := tuner.Wanted(); got != x.want {
			t.Errorf("%+v: %d workers at the start, want %d", x.c, got, x.want)
		}
	}
}

// Whatever is observed, the bounds hold, a fixed number stays, every decision is a
// change, and the same samples give the same decisions.
func TestAnySamples(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		c := Config{Intervals: 1 + rng.IntN(200), Cores: 1 + rng.IntN(16), PerEpoch: rng.IntN(50)}
		c.Min = rng.IntN(10)
		if rng.IntN(2) == 0 {
			c.Max = max(c.Min, 1) + rng.IntN(60)
		}
		if rng.IntN(4) == 0 {
			c.Fixed = 1 + rng.IntN(100)
		}
		a, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := New(c)
		d := c.withDefaults()
		var s Sample
		for range 3000 {
			s.At += time.Duration(rng.Int64N(int64(100 * time.Millisecond)))
			s.GraphWaiting, s.GraphRunning = rng.IntN(c.Intervals+1), rng.IntN(c.Cores+1)
			s.TensorWaiting, s.TensorRunning, s.Workers = rng.IntN(c.Intervals+1), rng.IntN(a.Wanted()+1), rng.IntN(a.Wanted()+1)
			s.Done += rng.Int64N(20)
			s.Busy += time.Duration(rng.Int64N(int64(time.Second)))
			if rng.IntN(100) == 0 {
				s.Refused++
			}
			before := a.Wanted()
			x, moved := a.Observe(s)
			y, _ := b.Observe(s)
			if !reflect.DeepEqual(x, y) {
				t.Fatalf("seed %d: the same samples gave %v and %v", seed, x, y)
			}
			now := a.Wanted()
			if moved != (now != before) || moved && (x.Before != before || x.Workers != now || x.Why == "") {
				t.Fatalf("seed %d: from %d to %d with decision %v, %v", seed, before, now, x, moved)
			}
			if c.Fixed > 0 && now != c.Fixed || c.Fixed == 0 && (now < d.Min || now > d.Max) {
				t.Fatalf("seed %d: %d workers with %+v", seed, now, c)
			}
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for want, c := range map[string]Config{
		"0 intervals: at least 1":               {Cores: 1},
		"0 cores: at least 1":                   {Intervals: 1},
		"-2 workers: give 1 or more":            {Intervals: 1, Cores: 1, Fixed: -2},
		"at least 5 and at most 3 workers":      {Intervals: 9, Cores: 1, Min: 5, Max: 3},
		"a start of 10 workers is not within":   {Intervals: 9, Cores: 1, Start: 10},
		"at most -1 workers":                    {Intervals: 9, Cores: 1, Max: -1},
		"a window of -1s":                       {Intervals: 9, Cores: 1, Window: -time.Second},
		"a pause of -1s":                        {Intervals: 9, Cores: 1, Pause: -time.Second},
		"-1 tensor tasks in an epoch: give 0":   {Intervals: 9, Cores: 1, PerEpoch: -1},
		"a start of -4 workers: give 0 or more": {Intervals: 9, Cores: 1, Start: -4},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}

// The package has no clock, goroutine or I/O.
func TestPure(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{`"errors"`, `"fmt"`, `"math"`, `"time"`}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range tree.Imports {
			if !slices.Contains(allowed, i.Path.Value) {
				t.Errorf("%s imports %s", f.Name(), i.Path.Value)
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType:
				t.Errorf("%s has a goroutine or channel", f.Name())
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && n.Sel.Name != "Duration" && n.Sel.Name != "Second" {
					t.Errorf("%s uses time.%s", f.Name(), n.Sel.Name)
				}
			}
			return true
		})
	}
}
