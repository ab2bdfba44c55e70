// Package prices reads current prices from AWS's price list service into the table
// of engine/cost. Reading needs an account with pricing:GetProducts, and costs
// nothing.
package prices

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/smithy-go"

	"dorylus/engine"
	"dorylus/engine/cost"
)

// endpointRegion is where the price list service answers, whatever region's prices
// are asked for.
const endpointRegion = "us-east-1"

// API is what is needed of *pricing.Client.
type API interface {
	GetProducts(context.Context, *pricing.GetProductsInput, ...func(*pricing.Options)) (*pricing.GetProductsOutput, error)
}

// Open finds credentials as all AWS tools do.
func Open(ctx context.Context) (API, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(endpointRegion))
	if err != nil {
		return nil, fmt.Errorf("read the AWS settings: %w", err)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("find AWS credentials: %w; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", err)
	}
	return pricing.NewFromConfig(cfg), nil
}

// Fetch reads the prices of a region: on demand, of the instance types, and of Lambda.
// Types that the list does not have are in missing. Figures that the list has no
// price for are not in the table, so that those of another table stay in use. now
// dates figures whose list has no date.
func Fetch(ctx context.Context, api API, region string, instances []string, now time.Time) (t *cost.Table, missing []string, err error) {
	t = &cost.Table{Region: region}
	for _, name := range instances {
		x, err := instance(ctx, api, region, name, now)
		if errors.Is(err, errNone) {
			missing = append(missing, name)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("look up the price of %s: %w", name, err)
		}
		t.Instances = append(t.Instances, x)
	}
	for _, l := range lambdaRates {
		r, err := l.fetch(ctx, api, region, now)
		if errors.Is(err, errNone) {
			missing = append(missing, l.rate.Name)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("look up the price of %s: %w", l.rate.What, err)
		}
		t.Rates = append(t.Rates, r)
	}
	return t, missing, nil
}

// errNone says that the list has no such product.
var errNone = errors.New("the price list has no such product")

// instance is one type of server.
func instance(ctx context.Context, api API, region, name string, now time.Time) (cost.Instance, error) {
	p, err := find(ctx, api, "AmazonEC2", now,
		"instanceType", name, "regionCode", region, "operatingSystem", "Linux", "preInstalledSw", "NA",
		"capacitystatus", "Used", "tenancy", "Shared", "marketoption", "OnDemand")
	if err != nil {
		return cost.Instance{}, err
	}
	if got := p.attributes["instanceType"]; got != name {
		return cost.Instance{}, fmt.Errorf("the price list answered with %q", got)
	}
	x := cost.Instance{Type: name, USDPerHour: p.usd, Origin: &p.origin, VCPUs: p.count("vcpu"), GPUs: p.count("gpu"), MemoryGiB: p.gib("memory")}
	return x, nil
}

// lambdaRate is a rate, and the group that the price list has it in.
type lambdaRate struct {
	group string
	units float64 // of the list, in one of the rate
	rate  cost.Rate
}

var lambdaRates = []lambdaRate{
	{"AWS-Lambda-Duration", 1, cost.Rate{Name: cost.LambdaX86, Unit: "GB-s", What: "Lambda duration, x86"}},
	{"AWS-Lambda-Duration-ARM", 1, cost.Rate{Name: cost.LambdaARM, Unit: "GB-s", What: "Lambda duration, arm64"}},
	{"AWS-Lambda-Requests", 1e6, cost.Rate{Name: cost.LambdaRequest, Unit: "million requests", What: "Lambda requests"}},
}

func (l lambdaRate) fetch(ctx context.Context, api API, region string, now time.Time) (cost.Rate, error) {
	p, err := find(ctx, api, "AWSLambda", now, "regionCode", region, "group", l.group)
	if err != nil {
		return cost.Rate{}, err
	}
	r := l.rate
	r.USD, r.Origin = math.Round(p.usd*l.units*1e12)/1e12, &p.origin // 0.2, not 0.19999999999999998
	return r, nil
}

// find is the one product that all filters (field and value by turns) leave over,
// with its price. Several are fine as long as they cost the same.
func find(ctx context.Context, api API, service string, now time.Time, filters ...string) (*product, error) {
	in := &pricing.GetProductsInput{ServiceCode: aws.String(service), FormatVersion: aws.String("aws_v1")}
	for f := range slices.Chunk(filters, 2) {
		in.Filters = append(in.Filters, types.Filter{Type: types.FilterTypeTermMatch, Field: aws.String(f[0]), Value: aws.String(f[1])})
	}
	var found *product
	for pages := pricing.NewGetProductsPaginator(api, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, explain(err)
		}
		for _, text := range page.PriceList {
			p, err := parse([]byte(text), now)
			if errors.Is(err, errNone) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if found != nil && found.usd != p.usd {
				return nil, fmt.Errorf("the price list has two prices, $%v and $%v: which one is meant?", found.usd, p.usd)
			}
			found = p
		}
	}
	if found == nil {
		return nil, errNone
	}
	return found, nil
}

// explain adds what to do to an error of the service.
func explain(err error) error {
	var refused smithy.APIError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode() == "AccessDeniedException":
		return fmt.Errorf("%w; the role needs pricing:GetProducts", err)
	case errors.As(err, &refused):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer from the price list service in time: %w; is there a way to the internet?", err)
	}
	return fmt.Errorf("%w; the price list service must be reachable", err)
}

var _ pricing.GetProductsAPIClient = API(nil)

// origin is where all figures of this package come from.
func origin(date string) engine.Origin {
	return engine.Origin{Date: date, From: "AWS price list", Certainty: "read from the service"}
}
