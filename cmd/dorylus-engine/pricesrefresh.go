package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dorylus/engine/cost"
	"dorylus/lambda/prices"
)

// refreshTime is how long `prices refresh` waits for AWS: some forty short answers.
const refreshTime = 2 * time.Minute

func (a *app) refreshPrices(ctx context.Context, asked []string) error {
	path, _ := a.pricesFile()
	if path == "" {
		return usagef("prices refresh: there is no place for the table: set DORYLUS_PRICES to a file")
	}
	old, err := cost.Load(path)
	if err != nil {
		return err
	}
	types := slices.Clone(asked)
	for _, x := range old.Instances {
		types = append(types, x.Type)
	}
	slices.Sort(types)
	types = slices.Compact(types)
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	api, err := prices.Open(ctx)
	if err != nil {
		return fmt.Errorf("refresh prices: %w", err)
	}
	fresh, missing, err := prices.Fetch(ctx, api, old.Region, types, time.Now())
	if err != nil {
		return fmt.Errorf("refresh prices: %w; the table is as it was", err)
	}
	for _, name := range asked {
		if slices.Contains(missing, name) {
			return fmt.Errorf("refresh prices: AWS's price list has no instance type %s in %s; the table is as it was", name, old.Region)
		}
	}
	return a.keepPrices(path, old, fresh, missing)
}

// keepPrices writes fresh figures, with the old ones of the same file that are not
// among them, and says what has changed.
func (a *app) keepPrices(path string, old, fresh *cost.Table, missing []string) error {
	embedded, err := cost.Load("")
	if err != nil {
		return err
	}
	changed := 0
	for i := range fresh.Instances {
		x := &fresh.Instances[i]
		j := slices.IndexFunc(old.Instances, func(o cost.Instance) bool { return o.Type == x.Type })
		if j < 0 {
			fmt.Fprintf(a.out, "%s: $%v an hour, new\n", x.Type, x.USDPerHour)
			continue
		}
		was := old.Instances[j]
		x.SpotUSDPerHour, x.SpotOrigin, x.BaselineMbps = was.SpotUSDPerHour, was.SpotOrigin, was.BaselineMbps
		x.GPUs, x.GPU = cmp.Or(x.GPUs, was.GPUs), was.GPU
		if was.USDPerHour != x.USDPerHour {
			fmt.Fprintf(a.out, "%s: $%v an hour, was %v on %s\n", x.Type, x.USDPerHour, was.USDPerHour, was.Origin.Date)
			changed++
		}
	}
	for _, name := range missing {
		fmt.Fprintf(a.out, "%s: AWS's price list has no price any more; the old one stays\n", name)
	}
	// what the file knew and AWS does not, with its own date
	for _, x := range old.Instances {
		if e, err := embedded.Lookup(x.Type); slices.Contains(missing, x.Type) && (err != nil || *e.Origin != *x.Origin || x.SpotOrigin != nil) {
			fresh.Instances = append(fresh.Instances, x)
		}
	}
	for i, r := range old.Rates { // both tables have the same rates in the same order
		fetched := slices.ContainsFunc(fresh.Rates, func(f cost.Rate) bool { return f.Name == r.Name })
		if !fetched && *r.Origin != *embedded.Rates[i].Origin {
			fresh.Rates = append(fresh.Rates, r)
		}
	}
	data, err := fresh.JSON()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of %s: %w", path, bare(err))
	}
	if err := writeFile(path, data); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%d instance prices and %d Lambda prices in %s; %d differ from before\n", len(fresh.Instances), len(fresh.Rates), path, changed)
	return err
}
