package cost

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"dorylus/engine"
)

// snapshot is the table that needs no file and no network.
//
//go:embed prices.json
var snapshot []byte

// Names of the rates that a Table may hold.
const (
	LambdaX86      = "lambda-x86_64"
	LambdaARM      = "lambda-arm64"
	LambdaRequest  = "lambda-request" // per million
	LambdaStreamed = "lambda-streamed"
	LambdaLog      = "lambda-log"
	ZoneTraffic    = "zone"
	NATTraffic     = "nat"
)

var rateNames = []string{LambdaX86, LambdaARM, LambdaRequest, LambdaStreamed, LambdaLog, ZoneTraffic, NATTraffic}

// Table is a set of prices of one region, in US dollars, and the format of the file
// that `prices refresh` writes. Each figure has its origin: in a file, inline or as
// the name of one of Sources; after Load, inline.
type Table struct {
	Region    string                   `json:"region"`
	Notes     []string                 `json:"notes,omitempty"`
	Sources   map[string]engine.Origin `json:"sources,omitempty"`
	Rates     []Rate                   `json:"rates,omitempty"`
	Instances []Instance               `json:"instances,omitempty"`
}

// Rate is the price of something that is counted.
type Rate struct {
	Name   string         `json:"name"` // one of the constants above
	USD    float64        `json:"usd"`  // per Unit
	Unit   string         `json:"unit"`
	What   string         `json:"what"`
	Source string         `json:"source,omitempty"`
	Origin *engine.Origin `json:"origin,omitempty"`
}

// Instance is a type of server. Fields that are 0 or "" are not known; GPUs 0 is none.
type Instance struct {
	Type       string  `json:"type"`
	USDPerHour float64 `json:"usd_per_hour"` // on demand, Linux
	// SpotUSDPerHour moves from hour to hour, so that it is never embedded: it is in a
	// table only if somebody has read it, SpotOrigin saying who and when.
	SpotUSDPerHour float64        `json:"spot_usd_per_hour,omitempty"`
	SpotOrigin     *engine.Origin `json:"spot_origin,omitempty"`
	VCPUs          int            `json:"vcpus,omitempty"`
	MemoryGiB      float64        `json:"memory_gib,omitempty"`
	BaselineMbps   int            `json:"baseline_mbps,omitempty"`
	GPUs           int            `json:"gpus,omitempty"`
	GPU            string         `json:"gpu,omitempty"` // "V100"
	Source         string         `json:"source,omitempty"`
	Origin         *engine.Origin `json:"origin,omitempty"`
}

// Load is the embedded table with the figures of the file at path in the place of its
// own. path "", or a file that is not there, leaves the embedded ones.
func Load(path string) (*Table, error) {
	t, err := parse(snapshot)
	if err != nil {
		return nil, fmt.Errorf("read the embedded prices: %w", err)
	}
	if path == "" {
		return t, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	own, err := parse(data)
	if err == nil && own.Region != t.Region {
		err = fmt.Errorf("it is of region %q, the embedded prices are of %q; prices of two regions do not mix", own.Region, t.Region)
	}
	if err != nil {
		return nil, fmt.Errorf("read prices %s: %w; correct it, or remove it to use the embedded ones", path, err)
	}
	t.overlay(own)
	return t, nil
}

// parse reads and checks a table and puts the origins inline.
func parse(data []byte) (*Table, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var t Table
	if err := dec.Decode(&t); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it goes on after the table")
	}
	var errs []error
	seen := map[string]bool{}
	check := func(what string, usd float64, from **engine.Origin, source string) {
		if seen[what] {
			errs = append(errs, fmt.Errorf("%s: it is there twice", what))
		}
		seen[what] = true
		if !(usd > 0) || math.IsInf(usd, 0) {
			errs = append(errs, fmt.Errorf("%s: its price is %v; give dollars above 0", what, usd))
		}
		if err := t.resolve(from, source); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	for i := range t.Rates {
		r := &t.Rates[i]
		if !slices.Contains(rateNames, r.Name) {
			errs = append(errs, fmt.Errorf("rate %q: no such rate; %s", r.Name, suggest(r.Name, rateNames)))
			continue
		}
		check("rate "+r.Name, r.USD, &r.Origin, r.Source)
		r.Source = ""
	}
	for i := range t.Instances {
		x := &t.Instances[i]
		if x.Type == "" {
			errs = append(errs, fmt.Errorf("instance %d has no type", i))
			continue
		}
		check("instance "+x.Type, x.USDPerHour, &x.Origin, x.Source)
		if x.SpotUSDPerHour != 0 || x.SpotOrigin != nil {
			check("spot price of "+x.Type, x.SpotUSDPerHour, &x.SpotOrigin, "")
		}
		x.Source = ""
	}
	t.Sources = nil
	if len(errs) > 0 {
		texts := make([]string, len(errs))
		for i, err := range errs {
			texts[i] = err.Error()
		}
		return nil, errors.New(strings.Join(texts, "; "))
	}
	return &t, nil
}

// resolve finds the origin of a figure and checks that it has a date.
func (t *Table) resolve(from **engine.Origin, source string) error {
	if *from == nil {
		o, ok := t.Sources[source]
		if !ok {
			return fmt.Errorf("it says neither origin nor a source that the table has (source %q)", source)
		}
		*from = &o
	}
	if _, err := time.Parse(time.DateOnly, (*from).Date); err != nil {
		return fmt.Errorf("its origin has date %q; write 2026-07-20", (*from).Date)
	}
	return nil
}

// overlay puts the figures of own over those of t. What own does not know of an
// instance stays.
func (t *Table) overlay(own *Table) {
	t.Notes = append(t.Notes, own.Notes...)
	for _, r := range own.Rates {
		i := slices.IndexFunc(t.Rates, func(old Rate) bool { return old.Name == r.Name })
		if i < 0 {
			t.Rates = append(t.Rates, r)
			continue
		}
		t.Rates[i] = r
	}
	for _, x := range own.Instances {
		i := slices.IndexFunc(t.Instances, func(old Instance) bool { return old.Type == x.Type })
		if i < 0 {
			t.Instances = append(t.Instances, x)
			continue
		}
		old := t.Instances[i]
		if x.VCPUs == 0 {
			x.VCPUs = old.VCPUs
		}
		if x.MemoryGiB == 0 {
			x.MemoryGiB = old.MemoryGiB
		}
		if x.BaselineMbps == 0 {
			x.BaselineMbps = old.BaselineMbps
		}
		if x.GPUs == 0 {
			x.GPUs = old.GPUs
		}
		if x.GPU == "" {
			x.GPU = old.GPU
		}
		t.Instances[i] = x
	}
}

// JSON is t as a table file.
func (t *Table) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(t, "", "  ")
	return append(data, '\n'), err
}
