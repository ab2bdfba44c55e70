package sink

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"dorylus/engine"
)

// pairColumns is how many servers a table of pairs may have; of more, its worst pair is
// named.
const pairColumns = 8

// pairs is how old the rows were that servers have read of each other, as a table with a
// row for each reader and a column for each source; "" of fewer than two servers, and of
// a sync run, where no row is old.
func (s *Summary) pairs(indent string) string {
	graphs := s.graphs()
	if len(graphs) < 2 || s.Pipeline != "async" {
		return ""
	}
	if len(graphs) > pairColumns {
		return s.worstPair(indent)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "reader \\ source\t")
	for _, source := range graphs {
		fmt.Fprintf(w, "%d\t", source.Rank)
	}
	for _, reader := range graphs {
		fmt.Fprintf(w, "\n%d\t", reader.Rank)
		for _, source := range graphs {
			fmt.Fprintf(w, "%s\t", ageShares(agesOf(reader, source.Rank)))
		}
	}
	fmt.Fprintln(w)
	w.Flush()
	var out strings.Builder
	fmt.Fprintf(&out, "%sAge of the oldest row that a server has read of each, in epochs, and %% of age 0/1/...\n", indent)
	for line := range strings.Lines(b.String()) {
		out.WriteString(indent + line)
	}
	return out.String()
}

// graphs are the graph servers among the servers.
func (s *Summary) graphs() []engine.ServerDone {
	return slices.DeleteFunc(slices.Clone(s.Servers), func(e engine.ServerDone) bool { return e.Role == engine.ParamRole })
}

// agesOf are the reads of a server's rows by another, by age.
func agesOf(reader engine.ServerDone, source int) []int64 {
	if source < 0 || source >= len(reader.RowAgeFrom) {
		return nil
	}
	return reader.RowAgeFrom[source]
}

// oldestAge is the greatest age with a count; -1 of none.
func oldestAge(ages []int64) int {
	for age := len(ages) - 1; age >= 0; age-- {
		if ages[age] != 0 {
			return age
		}
	}
	return -1
}

// ageShares is "2: 71/28/<1": the oldest age, and per cent by age up to it.
func ageShares(ages []int64) string {
	oldest := oldestAge(ages)
	if oldest < 0 {
		return "-"
	}
	var sum int64
	for _, n := range ages {
		sum += n
	}
	var parts []string
	for _, n := range ages[:oldest+1] {
		share := 100 * float64(n) / float64(sum)
		switch {
		case n > 0 && share < 1:
			parts = append(parts, "<1")
		case n < sum && share > 99:
			parts = append(parts, ">99")
		default:
			parts = append(parts, fmt.Sprintf("%.0f", share))
		}
	}
	return fmt.Sprintf("%d: %s", oldest, strings.Join(parts, "/"))
}

// worstPair names the pair that has read the oldest rows, and of those that have the
// first.
func (s *Summary) worstPair(indent string) string {
	oldest, by, of, pairs := -1, 0, 0, 0
	for _, reader := range s.Servers {
		for source := range reader.RowAgeFrom {
			age := oldestAge(reader.RowAgeFrom[source])
			if age >= 0 {
				pairs++
			}
			if age > oldest {
				oldest, by, of = age, reader.Rank, source
			}
		}
	}
	if oldest < 0 {
		return ""
	}
	return fmt.Sprintf("%sThe oldest row was %d epochs old, read by server %d of server %d; summary.json has all %s pairs that read\n",
		indent, oldest, by, of, thousands(int64(pairs)))
}
