package prepare

import (
	"context"

	"dorylus/engine/graph"
	"dorylus/engine/store"
)

// maxPartitions bounds the graph servers of a run.
const maxPartitions = 4096

// Partitions tells what each of so many graph servers gets of s: the partitions that a
// run with the first split has.
func Partitions(ctx context.Context, s *store.Store, parts int) (*store.PartitionsMeta, error) {
	var split string
	var train []int32
	if len(s.Splits) > 0 {
		split, train = s.Splits[0].Name, s.Splits[0].Train
	}
	return graph.Survey(ctx, s, split, train, graph.Partition(s, train, parts))
}
