package cost

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func load(t *testing.T, path string) *Table {
	t.Helper()
	table, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Golden lines of the snapshot, each figure with its origin.
func TestSnapshot(t *testing.T) {
	table := load(t, "")
	golden := map[string]string{
		"c5n.2xlarge":   `{"type":"c5n.2xlarge","usd_per_hour":0.432,"vcpus":8,"memory_gib":21,"baseline_mbps":10000,"origin":{"date":"2026-07-20","from":"price files of AWS's Karpenter","certainty":"those of 6 and 20 Jul 2026 agree"}}`,
		"p2.xlarge":     `{"type":"p2.xlarge","usd_per_hour":0.9,"vcpus":4,"memory_gib":61,"gpus":1,"gpu":"K80","origin":{"date":"2026-07-20","from":"price files of AWS's Karpenter","certainty":"those of 6 and 20 Jul 2026 agree"}}`,
		"p5en.48xlarge": `{"type":"p5en.48xlarge","usd_per_hour":63.296,"vcpus":192,"memory_gib":2048,"baseline_mbps":3200000,"gpus":8,"gpu":"H200","origin":{"date":"2026-07-20","from":"price files of AWS's Karpenter","certainty":"those of 6 and 20 Jul 2026 agree"}}`,
	}
	for name, want := range golden {
		x, err := table.Lookup(name)
		if got, _ := json.Marshal(x); err != nil || string(got) != want {
			t.Errorf("%s (%v): got\n%s\nwant\n%s", name, err, got, want)
		}
	}
	if len(table.Instances) != 30 {
		t.Errorf("%d instance types, want 30", len(table.Instances))
	}
	for _, x := range table.Instances {
		if x.SpotUSDPerHour != 0 {
			t.Errorf("%s has a spot price of %v embedded", x.Type, x.SpotUSDPerHour)
		}
		// what a vCPU-hour costs on any of them is within known bounds
		if perCPU := x.USDPerHour / float64(x.VCPUs); x.GPUs == 0 && !(perCPU > 0.035 && perCPU < 0.07) {
			t.Errorf("%s costs $%.3f per vCPU-hour", x.Type, perCPU)
		}
	}
	for _, name := range rateNames {
		if r := table.rate(name); r.USD <= 0 || r.Unit == "" || r.What == "" || r.Origin == nil {
			t.Errorf("rate %s is %+v", name, r)
		}
	}
}

func TestUnknownInstanceNamesTheNearest(t *testing.T) {
	for name, want := range map[string]string{"c5n.2xlarg": "c5n.2xlarge", "p3.2x": "p3.2xlarge", "c7gn.2xlarg": "c7gn.2xlarge"} {
		_, err := load(t, "").Lookup(name)
		if err == nil || !strings.Contains(err.Error(), "the nearest is "+want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want it to name %s", name, err, want)
		}
	}
	for _, mode := range []string{"cpu", "gpu", "lambda"} {
		if _, err := load(t, "").Lookup(DefaultInstance(mode)); err != nil {
			t.Errorf("default of mode %s: %v", mode, err)
		}
	}
}

func TestOwnTableOverridesTheEmbeddedOne(t *testing.T) {
	path := file(t, `{"region": "us-east-1", "sources": {"me": {"date": "2026-12-24", "from": "my bill"}},
		"rates": [{"name": "lambda-arm64", "usd": 0.00001, "unit": "GB-s", "what": "arm", "source": "me"}],
		"instances": [
			{"type": "c5n.2xlarge", "usd_per_hour": 0.4, "source": "me", "spot_usd_per_hour": 0.15, "spot_origin": {"date": "2026-12-25", "from": "the spot market"}},
			{"type": "x9.large", "usd_per_hour": 7, "origin": {"date": "2026-12-26", "from": "a rumour"}}]}`)
	table := load(t, path)
	x, err := table.Lookup("c5n.2xlarge")
	if err != nil || x.USDPerHour != 0.4 || x.Origin.Date != "2026-12-24" || x.VCPUs != 8 || x.BaselineMbps != 10000 {
		t.Errorf("overridden: %+v, %v", x, err)
	}
	if y, err := table.Lookup("c5n.large"); err != nil || y.Origin.Date != "2026-07-20" {
		t.Errorf("not overridden: %+v, %v", y, err)
	}
	r, err := table.Price(Servers{Graph: "c5n.2xlarge:spot", Graphs: 2, Param: "x9.large", Params: 1, Lambda: true})
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Graph[0]; g.USDPerHour != 0.15 || !g.Spot || g.Count != 2 || g.Origin.From != "the spot market" {
		t.Errorf("spot servers: %+v", g)
	}
	if p := r.Param[0]; p.USDPerHour != 7 || p.Origin.From != "a rumour" {
		t.Errorf("parameter servers: %+v", p)
	}
	if r.Lambda.GBs[ARM] != 0.00001 || r.Lambda.GBs[X86] != 0.0000166667 {
		t.Errorf("Lambda: %+v", r.Lambda)
	}
	data, err := table.JSON() // what is shown is a table again
	if err != nil {
		t.Fatal(err)
	}
	if again := load(t, file(t, string(data))); !reflect.DeepEqual(again.Instances, table.Instances) || !reflect.DeepEqual(again.Rates, table.Rates) {
		t.Errorf("read back\n%+v\nwant\n%+v", again, table)
	}
}

func TestSpotPricesAreNeverMadeUp(t *testing.T) {
	_, err := load(t, "").Price(Servers{Graph: "c5n.2xlarge:spot", Graphs: 1})
	if err == nil || !strings.Contains(err.Error(), "no spot price of c5n.2xlarge") {
		t.Errorf("got %v", err)
	}
	if r, err := load(t, "").Price(Servers{Graph: Unpriced}); r != nil || err != nil {
		t.Errorf("unpriced: %+v, %v", r, err)
	}
}

func TestBadTables(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                "unexpected EOF",
		`{"region":"us-east-1"} x`:         "it goes on after the table",
		`{"region":"eu-west-1"}`:           `region "eu-west-1"`,
		`{"region":"us-east-1","price":1}`: `unknown field "price"`,
		`{"region":"us-east-1","instances":[{"type":"a.b","usd_per_hour":-1,"origin":{"date":"2026-01-02"}}]}`:                                                               "instance a.b: its price is -1",
		`{"region":"us-east-1","instances":[{"type":"a.b","usd_per_hour":1}]}`:                                                                                               "instance a.b: it says neither origin nor a source",
		`{"region":"us-east-1","instances":[{"type":"a.b","usd_per_hour":1,"origin":{"date":"May"}}]}`:                                                                       `instance a.b: its origin has date "May"`,
		`{"region":"us-east-1","instances":[{"usd_per_hour":1}]}`:                                                                                                            "instance 0 has no type",
		`{"region":"us-east-1","rates":[{"name":"lambda-arm","usd":1}]}`:                                                                                                     `rate "lambda-arm": no such rate; the nearest is lambda-arm64`,
		`{"region":"us-east-1","instances":[{"type":"a.b","usd_per_hour":1,"origin":{"date":"2026-01-02"},"spot_usd_per_hour":0.5}]}`:                                        "spot price of a.b: it says neither",
		`{"region":"us-east-1","instances":[{"type":"a.b","usd_per_hour":1,"origin":{"date":"2026-01-02"}},{"type":"a.b","usd_per_hour":1,"origin":{"date":"2026-01-02"}}]}`: "instance a.b: it is there twice",
	} {
		path := file(t, text)
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s\n: %v, want %q and the path", text, err, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); err != nil {
		t.Errorf("no file: %v, want the embedded table", err)
	}
}
