//go:build cgo && amd64 && linux

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"dorylus/kernels/cpu"
)

type config struct {
	vertices, degree int
	widths           []int
	rounds           int
	quick            bool
	tileBytes        int
	seed             uint64
}

func main() {
	var c config
	widths := flag.String("widths", "16,41,64,128,256,602", "feature widths")
	out := flag.String("out", "", "write the results as JSON to this `file`")
	flag.IntVar(&c.vertices, "vertices", 233000, "vertices of the planted graph")
	flag.IntVar(&c.degree, "degree", 265, "edges drawn per vertex; repeats count once")
	flag.IntVar(&c.rounds, "rounds", 5, "rounds, of which the best counts")
	flag.Uint64Var(&c.seed, "seed", 1, "seed of the graphs")
	flag.BoolVar(&c.quick, "quick", false, "a small graph and few rounds: does it run, not how fast")
	flag.Parse()
	for _, w := range strings.Split(*widths, ",") {
		f, err := strconv.Atoi(w)
		if err != nil || f < 1 || f > 4096 {
			fail(fmt.Errorf("-widths: %q is no width from 1 to 4096", w))
		}
		c.widths = append(c.widths, f)
	}
	if c.quick {
		c.vertices, c.degree, c.rounds, c.tileBytes = 20000, 60, 2, 512<<10
	}
	if c.vertices < 1000 || c.degree < 1 || c.rounds < 1 || flag.NArg() > 0 {
		fail(fmt.Errorf("want at least 1000 vertices, 1 edge per vertex, 1 round and no arguments; got %d, %d, %d and %q", c.vertices, c.degree, c.rounds, flag.Args()))
	}
	r, err := run(c)
	if err != nil {
		fail(err)
	}
	r.print(os.Stdout)
	if *out != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			err = os.WriteFile(*out, append(text, '\n'), 0o644)
		}
		if err != nil {
			fail(fmt.Errorf("write %s: %w", *out, err))
		}
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "bench/kernels: %v\n", err)
	os.Exit(1)
}

// run does every measurement.
func run(c config) (*report, error) {
	start := time.Now()
	b := &bench{config: c, report: &report{Host: cpu.Describe(), Quick: c.quick}}
	if err := b.open(); err != nil {
		return nil, err
	}
	p := plant(c.vertices, c.degree, c.seed)
	b.csr = p.csr(shuffled(c.vertices, c.seed))
	b.Vertices, b.Edges = c.vertices, len(b.csr.Col)
	b.say("planted %d vertices, %d edges", b.Vertices, b.Edges)
	for _, f := range c.widths {
		if err := b.width(f); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"padding", b.padding}, {"orders", func() error { return b.orders(p) }}, {"rmat", b.rmat},
		{"instruction sets", b.sets}, {"scaling", b.scaling}, {"products", b.products},
		{"overhead", b.overhead}, {"memory", b.memory},
	} {
		if err := part.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		b.say("%s done", part.name)
	}
	b.Seconds = time.Since(start).Seconds()
	return b.report, b.close()
}

// say tells how far the run is, on standard error.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench/kernels: "+format+"\n", args...)
}
