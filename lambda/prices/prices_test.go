package prices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"dorylus/engine/cost"
)

// request is what the service is asked.
type request struct {
	ServiceCode, NextToken string
	Filters                []struct{ Type, Field, Value string }
}

// filter is the value that a field must have.
func (r *request) filter(field string) string {
	for _, f := range r.Filters {
		if f.Field == field && f.Type == "TERM_MATCH" {
			return f.Value
		}
	}
	return ""
}

// list is an answer: offers, and the token of the next page.
type list struct {
	PriceList     []string
	NextToken     string `json:",omitempty"`
	FormatVersion string
}

// serve starts a price list service and returns the SDK's client of it.
func serve(t *testing.T, answer func(*request) (int, any)) API {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var in request
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		if err != nil || r.Header.Get("X-Amz-Target") != "AWSPriceListService.GetProducts" {
			t.Errorf("asked for %q with %s: %v", r.Header.Get("X-Amz-Target"), body, err)
		}
		code, out := answer(&in)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return pricing.New(pricing.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

// made is an offer as the service writes it; attributes by turns.
func made(usd, begin, published string, attributes ...string) string {
	m := map[string]string{}
	for a := range slices.Chunk(attributes, 2) {
		m[a[0]] = a[1]
	}
	text, _ := json.Marshal(m)
	return fmt.Sprintf(`{"product":{"attributes":%s},"terms":{"OnDemand":{"T":{"priceDimensions":{"D":{"unit":"Hrs","beginRange":%q,"pricePerUnit":{"USD":%q}}}}},"Reserved":{"R":{"priceDimensions":{"D":{"pricePerUnit":{"USD":"9"}}}}}},"publicationDate":%q}`,
		text, begin, usd, published)
}

const published = "2026-11-27T21:40:11Z"

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// shop knows two instance types, one of them on a second page, and Lambda.
func shop(in *request) (int, any) {
	page := func(offers ...string) (int, any) {
		return http.StatusOK, list{PriceList: offers, FormatVersion: "aws_v1"}
	}
	if in.filter("regionCode") != "us-east-1" {
		return page()
	}
	switch in.ServiceCode + " " + in.filter("instanceType") + in.filter("group") {
	case "AmazonEC2 c5n.2xlarge":
		for field, want := range map[string]string{"operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used", "tenancy": "Shared", "marketoption": "OnDemand"} {
			if in.filter(field) != want {
				return page()
			}
		}
		return page(made("0.4440000000", "0", published, "instanceType", "c5n.2xlarge", "vcpu", "8", "memory", "21 GiB"))
	case "AmazonEC2 u9.metal":
		if in.NextToken == "" {
			return http.StatusOK, list{PriceList: []string{made("0.0000000000", "0", published)}, NextToken: "more"}
		}
		return page(made("7.5", "0", "", "instanceType", "u9.metal", "vcpu", "448", "memory", "1,952 GiB", "gpu", "8"))
	case "AWSLambda AWS-Lambda-Duration":
		return page(made("0.0000000000", "0", published, "group", "free"), strings.Replace(made("0.0000166667", "0", published), `"D":{"unit"`, `"E":{"beginRange":"6000000000","pricePerUnit":{"USD":"0.0000150000"}},"D":{"unit"`, 1))
	case "AWSLambda AWS-Lambda-Requests":
		return page(made("0.0000002000", "0", published))
	}
	return page()
}

func TestFetch(t *testing.T) {
	got, missing, err := Fetch(t.Context(), serve(t, shop), "us-east-1", []string{"c5n.2xlarge", "none.large", "u9.metal"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"none.large", cost.LambdaARM}; !slices.Equal(missing, want) {
		t.Errorf("missing %q, want %q", missing, want)
	}
	data, err := got.JSON()
	if err != nil {
		t.Fatal(err)
	}
	const from = `{
        "date": %q,
        "from": "AWS price list",
        "certainty": "read from the service"
      }`
	old, fresh := fmt.Sprintf(from, "2026-11-27"), fmt.Sprintf(from, "2026-11-30")
	want := `{
  "region": "us-east-1",
  "rates": [
    {
      "name": "lambda-x86_64",
      "usd": 0.0000166667,
      "unit": "GB-s",
      "what": "Lambda duration, x86",
      "origin": ` + old + `
    },
    {
      "name": "lambda-request",
      "usd": 0.2,
      "unit": "million requests",
      "what": "Lambda requests",
      "origin": ` + old + `
    }
  ],
  "instances": [
    {
      "type": "c5n.2xlarge",
      "usd_per_hour": 0.444,
      "vcpus": 8,
      "memory_gib": 21,
      "origin": ` + old + `
    },
    {
      "type": "u9.metal",
      "usd_per_hour": 7.5,
      "vcpus": 448,
      "memory_gib": 1952,
      "gpus": 8,
      "origin": ` + fresh + `
    }
  ]
}
`
	if string(data) != want {
		t.Errorf("got\n%s\nwant\n%s", data, want)
	}
}

func TestFetchErrors(t *testing.T) {
	offers := func(texts ...string) func(*request) (int, any) {
		return func(*request) (int, any) { return http.StatusOK, list{PriceList: texts} }
	}
	for want, answer := range map[string]func(*request) (int, any){
		"look up the price of a.b: the price list has two prices, $1 and $2: which one": offers(made("1", "0", published, "instanceType", "a.b"), made("2", "0", published, "instanceType", "a.b")),
		`the price list answered with "c.d"`:                                            offers(made("1", "0", published, "instanceType", "c.d")),
		"read the price list's answer: unexpected end":                                  offers(`{"product":`),
		`"-1" is no price`:   offers(made("-1", "0", published)),
		`"dear" is no price`: offers(made("dear", "0", published)),
		"the role needs pricing:GetProducts": func(*request) (int, any) {
			return http.StatusBadRequest, map[string]string{"__type": "AccessDeniedException", "message": "no"}
		},
		"ThrottlingException": func(*request) (int, any) {
			return http.StatusBadRequest, map[string]string{"__type": "ThrottlingException", "message": "slowly"}
		},
	} {
		_, _, err := Fetch(t.Context(), serve(t, answer), "us-east-1", []string{"a.b"}, now)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestNoNetwork(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	api := pricing.New(pricing.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	if _, _, err := Fetch(t.Context(), api, "us-east-1", []string{"a.b"}, now); err == nil || !strings.Contains(err.Error(), "must be reachable") {
		t.Errorf("nobody listens: %v", err)
	}
	late := &slow{}
	if _, _, err := Fetch(t.Context(), late, "us-east-1", []string{"a.b"}, now); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("nobody answers: %v", err)
	}
}

// slow answers after the deadline.
type slow struct{}

func (*slow) GetProducts(context.Context, *pricing.GetProductsInput, ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	return nil, fmt.Errorf("send: %w", errors.Join(context.DeadlineExceeded))
}
