package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"

	"dorylus/engine/order"
	"dorylus/engine/store"
)

// partitionsText is a table of partitions and what it comes to.
func partitionsText(m *store.PartitionsMeta) string {
	var b bytes.Buffer
	by := "edges and bytes"
	if m.Split != "" {
		by = fmt.Sprintf("edges, bytes and the training vertices of split %q", m.Split)
	}
	fmt.Fprintf(&b, "Partitions: %d, balanced by %s\n", len(m.Parts), by)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "partition\tblocks\trows\tedges\ttraining\tof the store\tghosts\tof gradients\tcut edges in\tout\tghosts, width 1\t")
	for i, p := range m.Parts {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%s\t\n", i, p.Blocks, p.Rows, p.Edges, p.Train, sizeText(p.Bytes),
			p.GhostsForward, p.GhostsBackward, p.CutIn, p.CutOut, sizeText(p.GhostBytes))
	}
	w.Flush()
	fmt.Fprintf(&b, "Cut: %d edges, %.1f %% of all. The largest partition has %s\n", m.CutEdges, 100*m.CutFraction, balanceText(m.Parts))
	fmt.Fprintf(&b, "Ghost rows: an epoch that computes every row sends %s for each column of each layer, rows and gradients together\n", sizeText(m.GhostBytes))
	return b.String()
}

// balanceText says how far the largest partition is above the average.
func balanceText(parts []store.PartitionMeta) string {
	var list []string
	for _, c := range []struct {
		what string
		of   func(store.PartitionMeta) int64
	}{
		{"the average edges", func(p store.PartitionMeta) int64 { return p.Edges }},
		{"rows", func(p store.PartitionMeta) int64 { return int64(p.Rows) }},
		{"bytes", func(p store.PartitionMeta) int64 { return p.Bytes }},
		{"training vertices", func(p store.PartitionMeta) int64 { return int64(p.Train) }},
	} {
		var all, most int64
		for _, p := range parts {
			all += c.of(p)
			most = max(most, c.of(p))
		}
		if all > 0 {
			list = append(list, fmt.Sprintf("%.2f times %s", float64(most)*float64(len(parts))/float64(all), c.what))
		}
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// estimateText says what computing the order will take, by each method that is tried,
// and why others are not.
func estimateText(list []order.Estimate) string {
	var parts []string
	for _, e := range list {
		text := fmt.Sprintf("%s (estimated at %s and %s beside the graph", e.Method, secondsText(e.Seconds), sizeText(e.Bytes))
		if e.Refused != "" {
			text = "not " + text + ": " + e.Refused
		}
		parts = append(parts, text+")")
	}
	return "order: " + strings.Join(parts, ", ")
}

func secondsText(s float64) string {
	if s < 10 {
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}
