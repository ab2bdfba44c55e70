package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func wired(sent, received, shards int64) summary {
	return summary{Wire: map[string]int64{
		"sent_bytes": sent, "received_bytes": received, "shard_bytes": shards, "weight_bytes": 7,
		"naive_epoch_bytes": 1000, "planned_epoch_bytes": 200, "saved_by_order": 300, "saved_by_fusion": 400, "saved_by_new": 100,
	}}
}

// What a run of three epochs moves more than one of one is two epochs, whatever stays
// with the workers; causes that this program does not know count too.
func TestEpochTraffic(t *testing.T) {
	got, err := epochTraffic(wired(900, 50, 500), wired(1100, 150, 560), 2)
	if err != nil {
		t.Fatal(err)
	}
	if got.Counted != 120 || got.Codec != 80 || got.Planned != 200 || got.Shards != 560 || math.Abs(got.Factor-1000.0/120) > 1e-12 {
		t.Errorf("the traffic is %+v", got)
	}
	if want := []string{"fusion", "order", "new"}; !slices.Equal(got.ordered(), want) {
		t.Errorf("causes %v, want %v", got.ordered(), want)
	}
	short := wired(1100, 150, 560)
	delete(short.Wire, "saved_by_new")
	if _, err := epochTraffic(wired(900, 50, 500), short, 2); err == nil || !strings.Contains(err.Error(), "a cause is missing") {
		t.Errorf("a missing cause: %v", err)
	}
	if _, err := epochTraffic(summary{}, summary{}, 2); err == nil || !strings.Contains(err.Error(), "do not tell") {
		t.Errorf("no wire: %v", err)
	}
}

func TestReadLedger(t *testing.T) {
	const events = `{"event":"run_start","rates":{"lambda":{"usd_per_gb_s":{"x86_64":0.5},"usd_per_request":0.25}}}
{"event":"lambda_held","mb_ms":{}}
{"event":"lambda_used","arch":"x86_64","memory_mb":1024,"billed_ms":1500}
{"event":"lambda_used","arch":"x86_64","memory_mb":2048,"billed_ms":500}
`
	got, err := readLedger(strings.NewReader(events))
	want := ledgerEntry{Invocations: 2, BilledMS: 2000, GBSeconds: 2.5, Duration: 1.25, Requests: 0.5}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for bad, why := range map[string]string{
		"":                                       "no invocation",
		"{":                                      "unexpected end",
		`{"event":"lambda_used","arch":"arm64"}`: `no price of "arm64"`,
	} {
		if _, err := readLedger(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", bad, err, why)
		}
	}
}

func TestParseSettled(t *testing.T) {
	const out = `{"Action":"start"}
{"Action":"attr","Key":"other","Value":"x"}
{"Action":"attr","Key":"settled","Value":"{\"scenario\":\"slow tasks\",\"start\":1,\"workers\":28,\"least\":27,\"most\":29}"}
{"Action":"attr","Key":"settled","Value":"{\"scenario\":\"slow tasks\",\"start\":32,\"workers\":20}"}
`
	all, err := parseSettled([]byte(out))
	if err != nil || len(all) != 2 || all[0] != (settled{Scenario: "slow tasks", Start: 1, Workers: 28, Lo: 27, Hi: 29}) {
		t.Fatalf("%+v, %v", all, err)
	}
	r := report{Tuner: all}
	r.near("slow tasks", false)
	if g := r.Goals[0]; !g.Pass || math.Abs(g.Value-8.0/28) > 1e-12 {
		t.Errorf("28 and 20 workers: %+v", g)
	}
	r.near("slow tasks", true) // nothing was told of it
	if r.Goals[1].Pass {
		t.Errorf("nothing was told, and passes: %+v", r.Goals[1])
	}
	if _, err := parseSettled([]byte(`{"Action":"pass"}`)); err == nil || !strings.Contains(err.Error(), `told no "settled"`) {
		t.Errorf("nothing told: %v", err)
	}
}

// Parts that do not add up, a ledger that differs, or other weights miss their goals.
func TestComparisonsAreJudged(t *testing.T) {
	var r report
	r.sameBits("x", summary{Weights: "aa"}, summary{Weights: "ab"})
	r.sameBits("x", summary{}, summary{})
	r.holds("compare", "dollars", sameDollars(0.1, 0.1+2e-9), "")
	r.sameBits("x", summary{Weights: "aa"}, summary{Weights: "aa"})
	r.holds("compare", "dollars", sameDollars(0.1+0.2, 0.3), "")
	if r.missed() != 3 || !r.Goals[3].Pass || !r.Goals[4].Pass {
		t.Errorf("%d were missed of %+v", r.missed(), r.Goals)
	}
}
