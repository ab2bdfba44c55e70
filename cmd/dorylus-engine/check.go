package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dorylus/engine/dataset"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
)

func (a *app) checkCommand() *cobra.Command {
	var read readFlags
	var asJSON bool
	var parts int
	cmd := &cobra.Command{
		Use:   "check SRC",
		Short: "Check a graph without writing anything; exit 1 if training would be wrong",
		Long: `Check reads a graph in any known format, or a store, and reports everything that makes training wrong or
different from what its owner may expect, with counts, the first example, the effect and what to do.`,
		Example: "  dorylus-engine check edges.csv --labels-file=labels.csv",
		Args:    oneArg("a source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.check(cmd.Context(), args[0], read.opt, parts, asJSON)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().IntVar(&parts, "partitions", 0, "of a store, report what each of `N` graph servers would get")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as one JSON object")
	read.add(cmd)
	return cmd
}

// checked is what check has looked at.
type checked struct {
	Name     string        `json:"name"`
	Format   string        `json:"format"`
	Vertices int           `json:"vertices"`
	Records  int64         `json:"edge_records"`
	Findings []findingJSON `json:"findings"`
	// Partitions are those asked for, or those that the store was prepared for.
	Partitions *store.PartitionsMeta `json:"partitions,omitempty"`
}

func (a *app) check(ctx context.Context, src string, opt dataset.Options, parts int, asJSON bool) error {
	if parts < 0 || parts > 0 && !isStore(src) {
		return usagef("--partitions=%d: give 1 or more, for a store; prepare SRC --partitions=N writes one", parts)
	}
	var sum checked
	var findings []dataset.Finding
	if isStore(src) {
		st, err := store.Open(src, store.OpenOptions{Verify: true})
		if err != nil {
			return err
		}
		defer st.Close()
		findings = st.Meta.Findings
		sum = checked{Name: st.Meta.Name, Format: "store", Vertices: st.Meta.Vertices, Records: st.Meta.Edges, Partitions: st.Meta.Partitions}
		if parts > 0 {
			if sum.Partitions, err = prepare.Partitions(ctx, st, parts); err != nil {
				return stoppedEarly(ctx, err)
			}
		}
	} else {
		show := a.stages(asJSON)
		opt.Progress = show.bytes("read")
		raw, err := openSource(ctx, src, opt)
		show.clear()
		if err != nil {
			return stoppedEarly(ctx, err)
		}
		findings = dataset.Check(raw)
		sum = checked{Name: raw.Name, Format: raw.Format, Vertices: raw.N, Records: int64(len(raw.Src))}
	}
	sum.Findings = findingsJSON(findings)
	if asJSON {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(sum); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "%s (%s): %d vertices, %d edge records\n%s", sum.Name, sum.Format, sum.Vertices, sum.Records, findingsText(findings))
		if sum.Partitions != nil {
			fmt.Fprint(a.out, partitionsText(sum.Partitions))
		}
	}
	errors := 0
	for _, f := range findings {
		if f.Severity == dataset.Error {
			errors++
		}
	}
	if errors > 0 {
		return fmt.Errorf("check %s: training would be wrong; findings marked error: %d", src, errors)
	}
	if !asJSON {
		fmt.Fprintln(a.out, "Nothing found that would make training wrong.")
	}
	return nil
}

// findingJSON is a dataset.Finding with lower-case keys and severity in words.
type findingJSON struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Count    int64  `json:"count"`
	First    string `json:"first"`
	Effect   string `json:"effect"`
	Remedy   string `json:"remedy"`
}

func findingsJSON(findings []dataset.Finding) []findingJSON {
	list := make([]findingJSON, len(findings))
	for i, f := range findings {
		list[i] = findingJSON{f.Code, f.Severity.String(), f.Count, f.First, f.Effect, f.Remedy}
	}
	return list
}

// findingsText is a paragraph per finding: severity, code and count, and then
// what there is to say.
func findingsText(findings []dataset.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%-8s %-28s %d\n", f.Severity, f.Code, f.Count)
		for _, part := range []struct{ name, text string }{{"first", f.First}, {"effect", f.Effect}, {"remedy", f.Remedy}} {
			if part.text != "" {
				fmt.Fprintf(&b, "         %-7s %s\n", part.name, part.text)
			}
		}
	}
	return b.String()
}
