package prices

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dorylus/engine"
)

// product is an offer of the price list with its price on demand.
type product struct {
	attributes map[string]string
	usd        float64 // per unit, of the first tier
	origin     engine.Origin
}

// offer is the part of the list's JSON that is read.
type offer struct {
	Product struct {
		Attributes map[string]string `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				BeginRange   string            `json:"beginRange"`
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
	PublicationDate string `json:"publicationDate"` // "2026-07-17T21:40:11Z"
}

// parse reads an offer. One without a price above 0, such as a free tier, is errNone.
func parse(data []byte, now time.Time) (*product, error) {
	var o offer
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("read the price list's answer: %w", err)
	}
	p := &product{attributes: o.Product.Attributes}
	for _, term := range o.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			text, ok := d.PricePerUnit["USD"]
			if !ok || d.BeginRange != "" && d.BeginRange != "0" {
				continue
			}
			usd, err := strconv.ParseFloat(text, 64)
			if err != nil || usd < 0 {
				return nil, fmt.Errorf("read the price list's answer: %q is no price", text)
			}
			if p.usd != 0 && usd != 0 && usd != p.usd {
				return nil, fmt.Errorf("the price list has two prices, $%v and $%v, in one offer", p.usd, usd)
			}
			p.usd = max(p.usd, usd)
		}
	}
	if p.usd == 0 {
		return nil, errNone
	}
	date, _, _ := strings.Cut(o.PublicationDate, "T")
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		date = now.Format(time.DateOnly)
	}
	p.origin = origin(date)
	return p, nil
}

// count is a whole number among the attributes, 0 where there is none.
func (p *product) count(name string) int {
	n, err := strconv.Atoi(p.attributes[name])
	if err != nil {
		return 0 // "NA", or not there: not known
	}
	return n
}

// gib reads "1,952 GiB"; 0 where it is written otherwise.
func (p *product) gib(name string) float64 {
	number, ok := strings.CutSuffix(p.attributes[name], " GiB")
	x, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if !ok || err != nil {
		return 0
	}
	return x
}
