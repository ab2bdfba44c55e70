package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dorylus/engine"
	"dorylus/engine/cost"
)

// pricesCommand shows the table by which runs are billed, and refreshes it.
func (a *app) pricesCommand() *cobra.Command {
	top := &cobra.Command{
		Use:   "prices",
		Short: "The prices by which runs are billed, each with its date",
		Long: `Runs are billed by a table of prices (us-east-1, US dollars) that is part of this program. Figures of
your own table, which "prices refresh" writes, come before those. It is the file that DORYLUS_PRICES
names, else dorylus/prices.json in $XDG_CONFIG_HOME or ~/.config.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON bool
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the prices with date and origin",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return a.showPrices(asJSON) },
	}
	show.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, which is a table file")
	refresh := &cobra.Command{
		Use:   "refresh [TYPE ...]",
		Short: "Read current prices from AWS into your own table",
		Long: `Refresh asks AWS's price list for every instance type of the table, for the TYPEs named, and for Lambda,
and writes the answers to your own table. It needs AWS credentials with pricing:GetProducts, and costs nothing.
Prices of streamed replies, logs and traffic stay as they are.`,
		Example: "  dorylus-engine prices refresh m7i.2xlarge",
		RunE:    func(cmd *cobra.Command, types []string) error { return a.refreshPrices(cmd.Context(), types) },
	}
	top.AddCommand(show, refresh)
	return top
}

func (a *app) showPrices(asJSON bool) error {
	path, _ := a.pricesFile()
	t, err := cost.Load(path)
	if err != nil {
		return err
	}
	if asJSON {
		data, err := t.JSON()
		if err == nil {
			_, err = a.out.Write(data)
		}
		return err
	}
	var from footnotes
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "instance\t$/hour\tspot $/hour\tvCPUs\tGiB\tMbps\tGPUs\tdate\tfrom")
	for _, x := range t.Instances {
		gpus, spot, spotFrom := "", "", ""
		if x.GPUs > 0 {
			gpus = strings.TrimSpace(fmt.Sprintf("%d %s", x.GPUs, x.GPU))
		}
		if x.SpotOrigin != nil {
			spot, spotFrom = fmt.Sprint(x.SpotUSDPerHour), ", spot "+from.mark(*x.SpotOrigin)
		}
		fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Type, x.USDPerHour, spot, ifKnown(x.VCPUs), ifKnown(x.MemoryGiB),
			ifKnown(x.BaselineMbps), gpus, x.Origin.Date, from.mark(*x.Origin)+spotFrom)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nwhat\t$\tper\tdate\tfrom")
	for _, r := range t.Rates {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.What, decimal(r.USD), r.Unit, r.Origin.Date, from.mark(*r.Origin))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for i, o := range from {
		fmt.Fprintf(w, "[%d] %s\n", i+1, strings.TrimSuffix(o.Date+", "+o.From+", "+o.Certainty, ", "))
	}
	fmt.Fprintf(w, "\nRegion %s, US dollars. Own table: %s.\n", t.Region, tableState(path))
	for _, n := range t.Notes {
		fmt.Fprintf(w, "%s.\n", n)
	}
	return w.Flush()
}

// footnotes are the origins of the figures shown so far.
type footnotes []engine.Origin

// mark is the footnote of an origin: "[2]".
func (f *footnotes) mark(o engine.Origin) string {
	i := slices.Index(*f, o)
	if i < 0 {
		i = len(*f)
		*f = append(*f, o)
	}
	return fmt.Sprintf("[%d]", i+1)
}

// ifKnown is a number, "?" for one that is not known.
func ifKnown[T int | float64](x T) string {
	if x == 0 {
		return "?"
	}
	return fmt.Sprint(x)
}

// tableState says where the user's table is, or would be.
func tableState(path string) string {
	switch {
	case path == "":
		return "none (name a file in DORYLUS_PRICES to have one)"
	case exists(path):
		return path
	}
	return "none (" + path + " is not there)"
}
