package cost

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dorylus/engine"
)

// spotSuffix after a type asks for its spot price: "c5n.2xlarge:spot".
const spotSuffix = ":spot"

// Unpriced, in the place of an instance type, asks for no prices at all.
const Unpriced = "none"

// DefaultInstance is the type that a run of that mode is priced as where none is
// named: the graph servers of the paper, or its GPU server.
func DefaultInstance(mode string) string {
	if mode == "gpu" {
		return GPUInstance(1)
	}
	return "c5n.2xlarge"
}

// GPUInstance is the least of the paper's family of GPU servers that has so many GPUs; ""
// if none has.
func GPUInstance(gpus int) string {
	switch {
	case gpus <= 1:
		return "p3.2xlarge"
	case gpus <= 4:
		return "p3.8xlarge"
	case gpus <= 8:
		return "p3.16xlarge"
	}
	return ""
}

// HasGPUs refuses an instance type, with or without ":spot", that has fewer GPUs than a run
// uses on one server.
func (t *Table) HasGPUs(name string, gpus int) error {
	if name == Unpriced {
		return nil
	}
	x, err := t.Lookup(strings.TrimSuffix(name, spotSuffix))
	switch {
	case err != nil:
		return err
	case x.GPUs == 0:
		return fmt.Errorf("%s has no GPU (or your own table of prices does not say so, by gpus); the run uses %d on a server, as %s has", x.Type, gpus, cmp.Or(GPUInstance(gpus), "no type that is known"))
	case x.GPUs < gpus:
		return fmt.Errorf("%s has %d GPUs; the run uses %d on a server", x.Type, x.GPUs, gpus)
	}
	return nil
}

// Lookup finds an instance type. The error names one that is written alike.
func (t *Table) Lookup(name string) (Instance, error) {
	i := slices.IndexFunc(t.Instances, func(x Instance) bool { return x.Type == name })
	if i >= 0 {
		return t.Instances[i], nil
	}
	types := make([]string, len(t.Instances))
	for i := range types {
		types[i] = t.Instances[i].Type
	}
	return Instance{}, fmt.Errorf("no price of instance type %q: %s; `prices show` lists those that have one, `prices refresh %s` looks it up", name, suggest(name, types), strings.TrimSuffix(name, spotSuffix))
}

// Servers is what a run is held on. Names are instance types, with ":spot" for their
// spot price.
type Servers struct {
	Graph  string // of the graph servers, or Unpriced
	Graphs int
	// Params 0: the parameter servers share the processes of the graph servers.
	Param  string
	Params int
	Lambda bool // Lambda workers may be used
}

// Price is what a run on s costs by t; nil if it is not to be priced.
func (t *Table) Price(s Servers) (*engine.Rates, error) {
	if s.Graph == Unpriced {
		return nil, nil
	}
	r := &engine.Rates{Region: t.Region}
	add := func(to *[]engine.ServerRate, name string, count int) error {
		rate, err := t.server(name, count)
		*to = append(*to, rate)
		return err
	}
	if err := add(&r.Graph, s.Graph, s.Graphs); err != nil {
		return nil, err
	}
	if s.Params > 0 {
		if err := add(&r.Param, s.Param, s.Params); err != nil {
			return nil, err
		}
	}
	zone, nat := t.rate(ZoneTraffic), t.rate(NATTraffic)
	r.ZoneGB, r.NATGB, r.Traffic = zone.USD, nat.USD, *zone.Origin
	if s.Lambda {
		x86 := t.rate(LambdaX86)
		r.Lambda = &engine.LambdaRates{
			GBs:     map[string]float64{X86: x86.USD, ARM: t.rate(LambdaARM).USD},
			Request: t.rate(LambdaRequest).USD / 1e6, StreamedGB: t.rate(LambdaStreamed).USD, LogGB: t.rate(LambdaLog).USD,
			Origin: *x86.Origin,
		}
	}
	return r, nil
}

// Architectures of Lambda workers, as Lambda writes them.
const (
	X86 = "x86_64"
	ARM = "arm64"
)

func (t *Table) server(name string, count int) (engine.ServerRate, error) {
	kind, spot := strings.CutSuffix(name, spotSuffix)
	x, err := t.Lookup(kind)
	if err != nil {
		return engine.ServerRate{}, err
	}
	rate := engine.ServerRate{Type: kind, Count: count, USDPerHour: x.USDPerHour, Spot: spot, Origin: *x.Origin}
	if spot {
		if x.SpotOrigin == nil {
			return rate, fmt.Errorf("no spot price of %s: spot prices are read, never embedded; write spot_usd_per_hour and spot_origin into your own table, or leave %s out", kind, spotSuffix)
		}
		rate.USDPerHour, rate.Origin = x.SpotUSDPerHour, *x.SpotOrigin
	}
	return rate, nil
}

// rate is a rate by name; the embedded table has them all.
func (t *Table) rate(name string) Rate {
	return t.Rates[slices.IndexFunc(t.Rates, func(r Rate) bool { return r.Name == name })]
}

// suggest names the word that is written most like name.
func suggest(name string, words []string) string {
	best, least := "", 0
	for _, w := range words {
		if d := distance(name, w); best == "" || d < least {
			best, least = w, d
		}
	}
	return fmt.Sprintf("the nearest is %s", best)
}

// distance is the least number of letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
