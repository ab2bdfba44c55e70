package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPricesShow(t *testing.T) {
	dir := t.TempDir()
	env := []string{"DORYLUS_PRICES=own.json"}
	r := call(t, dir, env, "prices", "show")
	for _, want := range []string{
		"c5n.2xlarge    0.432                 8      21    10000            2026-07-20  [1]\n",
		"p2.xlarge      0.9                   4      61    ?        1 K80   2026-07-20  [1]\n",
		"Lambda duration, x86; INIT is billed, steps of 1 ms               0.0000166667  GB-s              2026-11-30  [2]\n",
		"[1] 2026-07-20, price files of AWS's Karpenter, those of 6 and 20 Jul 2026 agree\n",
		"[3] 2026-11-30, one source or memory, unverified\n",
		"Own table: none (own.json is not there).\n",
	} {
		if r.code != exitDone || !strings.Contains(r.out, want) {
			t.Fatalf("exit %d: %q is not in\n%s%s", r.code, want, r.out, r.err)
		}
	}
	wantFailure(t, call(t, dir, env, "--epochs=1"), exitFailed, "DORYLUS_PRICES names own.json, which is not there")
	// what --json shows is a table file, with other figures if they are changed
	shown := call(t, dir, env, "prices", "show", "--json")
	write(t, dir, "own.json", strings.Replace(shown.out, `"usd_per_hour": 0.432,`, `"usd_per_hour": 0.444, "spot_usd_per_hour": 0.2, "spot_origin": {"date": "2026-12-24", "from": "me"},`, 1))
	if r := call(t, dir, env, "prices", "show"); !strings.Contains(r.out, "c5n.2xlarge    0.444    0.2          8 ") || !strings.Contains(r.out, "spot [2]") || !strings.Contains(r.out, "Own table: own.json.") {
		t.Errorf("own figures do not show:\n%s%s", r.out, r.err)
	}
	got := object(t, call(t, dir, env, append(quiet, "--epochs=1", "--instance=c5n.2xlarge:spot")...).out)
	if note := got["cost_note"].(string); !strings.Contains(note, "1 c5n.2xlarge at $0.2 an hour (us-east-1 spot, 2026-12-24, me)") {
		t.Errorf("spot run: %s", note)
	}
	write(t, dir, "own.json", `{"region": "us-east-1", "instances": [{"type": "x", "usd_per_hour": 0, "origin": {"date": "never"}}]}`)
	for _, args := range [][]string{{"prices", "show"}, {"--epochs=1"}} {
		wantFailure(t, call(t, dir, env, args...), exitFailed, "own.json", "instance x: its price is 0; give dollars above 0; instance x: its origin has date")
	}
}

func TestRunsAreBilled(t *testing.T) {
	dir := t.TempDir()
	got := object(t, mustRun(t, dir, append(quiet, "--epochs=3", "--out=RUN")...))
	bill := got["cost_usd"].(map[string]any)
	sum := 0.0
	for part, x := range bill {
		if part != "total" {
			sum += math.Round(x.(float64) * 1e9)
		}
	}
	total := bill["total"].(float64)
	want := got["total_seconds"].(float64) * 0.432 / 3600
	if sum != math.Round(total*1e9) || math.Abs(total-want) > 1e-9 || len(bill) != 7 {
		t.Errorf("bill %v adds up to %v; want %v for %v s", bill, sum/1e9, want, got["total_seconds"])
	}
	if v := 1 / (total * got["total_seconds"].(float64)); math.Abs(got["value"].(float64)/v-1) > 1e-9 {
		t.Errorf("value %v, want %v", got["value"], v)
	}
	if r := call(t, dir, nil, "report", "RUN"); r.code != exitDone || !strings.Contains(r.err, "agrees") || !strings.Contains(r.out, "priced as 1 c5n.2xlarge at $0.432 an hour") {
		t.Errorf("report: exit %d\n%s%s", r.code, r.out, r.err)
	}
	none := object(t, mustRun(t, dir, append(quiet, "--epochs=1", "--instance=none")...))
	if none["cost_usd"].(map[string]any)["total"] != nil || none["value"] != nil || !strings.HasPrefix(none["cost_note"].(string), "not priced") {
		t.Errorf("unpriced: %v, value %v, %v", none["cost_usd"], none["value"], none["cost_note"])
	}
	wantFailure(t, call(t, dir, nil, "--instance=c5.2xlarg"), exitUsage, `"c5.2xlarg"`, "nearest is c5.2xlarge")
	wantFailure(t, call(t, dir, nil, "--max-cost=-1"), exitUsage, "--max-cost=-1", "give dollars")
	wantFailure(t, call(t, dir, nil, "--max-cost=1", "--instance=none"), exitUsage, "a limit needs prices")
}

func TestMaxCostStopsAndResumes(t *testing.T) {
	dir := t.TempDir()
	straight := object(t, mustRun(t, dir, append(quiet, "--epochs=12")...))
	// any epoch is too dear for the first segment
	first := call(t, dir, nil, append(quiet, "--epochs=12", "--max-cost=0.000000001", "--out=RUN")...)
	got := object(t, first.out)
	if first.code != exitDone || got["reason"] != "max-cost" || got["epochs_run"] != 1.0 || !strings.Contains(first.err, "go on with --resume=RUN and a higher --max-cost") {
		t.Fatalf("exit %d, %v after %v epochs\n%s", first.code, got["reason"], got["epochs_run"], first.err)
	}
	wantFailure(t, call(t, dir, nil, append(quiet, "--resume=RUN")...), exitFailed, "resume RUN: it has cost $0.0000", "give a --max-cost above that")
	spent := got["cost_usd"].(map[string]any)["total"].(float64)
	rest := object(t, mustRun(t, dir, append(quiet, "--resume=RUN", "--max-cost=10")...))
	if rest["reason"] != "epochs" || rest["weights_sha256"] != straight["weights_sha256"] {
		t.Errorf("resumed: %v, weights %v; want epochs, %v", rest["reason"], rest["weights_sha256"], straight["weights_sha256"])
	}
	if total := rest["cost_usd"].(map[string]any)["total"].(float64); total <= spent {
		t.Errorf("the bill of both segments is %v, of the first %v", total, spent)
	}
	several := call(t, dir, nil, append(quiet, "--epochs=2", "--eval-every=9", "--runs=5", "--max-cost=0.000000001")...)
	if got := object(t, several.out); several.code != exitDone || got["runs"] != nil || got["epochs_run"] != 1.0 || !strings.Contains(several.err, "Stopped after 1 of 5 runs") {
		t.Errorf("five runs: exit %d, %v\n%s", several.code, got, several.err)
	}
}

// priceList serves every instance type for 2 dollars an hour, but none of p2, and
// Lambda durations for 3.
func priceList(t *testing.T) []string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct {
			Filters []struct{ Field, Value string }
		}
		if err := json.Unmarshal(body, &in); err != nil {
			t.Errorf("asked with %s: %v", body, err)
		}
		kind, usd := "", "2"
		for _, f := range in.Filters {
			switch f.Field {
			case "instanceType":
				kind = f.Value
			case "group":
				usd = "3"
			}
		}
		var offers []string
		if !strings.HasPrefix(kind, "p2.") && kind != "nosuch.large" {
			offers = []string{fmt.Sprintf(`{"product":{"attributes":{"instanceType":%q,"vcpu":"4"}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"beginRange":"0","pricePerUnit":{"USD":%q}}}}}},"publicationDate":"2026-12-01T00:00:00Z"}`, kind, usd)}
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if err := json.NewEncoder(w).Encode(map[string]any{"PriceList": offers}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return []string{"AWS_ENDPOINT_URL_PRICING=" + server.URL, "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_CONFIG_FILE=none", "AWS_SHARED_CREDENTIALS_FILE=none"}
}

func TestPricesRefresh(t *testing.T) {
	dir := t.TempDir()
	env := append(priceList(t), "XDG_CONFIG_HOME="+dir, "DORYLUS_PRICES=")
	r := call(t, dir, env, "prices", "refresh", "m9.large")
	path := filepath.Join(dir, "dorylus", "prices.json")
	for _, want := range []string{"c5n.2xlarge: $2 an hour, was 0.432 on 2026-07-20\n", "m9.large: $2 an hour, new\n", "p2.xlarge: AWS's price list has no price any more; the old one stays\n",
		"30 instance prices and 3 Lambda prices in " + path + "; 29 differ from before\n"} {
		if r.code != exitDone || !strings.Contains(r.out, want) {
			t.Errorf("exit %d: %q is not in\n%s%s", r.code, want, r.out, r.err)
		}
	}
	shown := call(t, dir, env, "prices", "show").out
	for _, want := range []string{"c5n.2xlarge    2                    4      21    10000            2026-12-01  [1]\n", "p2.xlarge      0.9 ", "m9.large       2 ", "[1] 2026-12-01, AWS price list, read from the service"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
	before := tree(t, dir)
	wantFailure(t, call(t, dir, env, "prices", "refresh", "nosuch.large"), exitFailed, "no instance type nosuch.large in us-east-1; the table is as it was")
	offline := append(env, "AWS_ENDPOINT_URL_PRICING=http://127.0.0.1:1", "AWS_MAX_ATTEMPTS=1")
	wantFailure(t, call(t, dir, offline, "prices", "refresh"), exitFailed, "refresh prices: look up the price of", "must be reachable", "the table is as it was")
	anonymous := append(env, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_EC2_METADATA_DISABLED=true")
	wantFailure(t, call(t, dir, anonymous, "prices", "refresh"), exitFailed, "refresh prices: find AWS credentials", "set AWS_PROFILE")
	if after := tree(t, dir); after != before {
		t.Errorf("files before\n%safter\n%s", before, after)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
