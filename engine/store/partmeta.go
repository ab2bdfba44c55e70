package store

// PartitionsMeta records how a store is cut for a number of graph servers. It tells
// people what to expect; any other number can be had from the same store.
type PartitionsMeta struct {
	// Split is the split whose training vertices were balanced; "" if there was none.
	Split string `json:"split,omitempty"`
	// CutEdges are the edges between partitions, CutFraction their share of all.
	CutEdges    int64   `json:"cut_edges"`
	CutFraction float64 `json:"cut_fraction"`
	// GhostBytes are those of one float32 of every ghost row, both ways: what an epoch
	// sends for each layer and column of its width.
	GhostBytes int64 `json:"ghost_bytes"`
	// Parts has the partitions in order.
	Parts []PartitionMeta `json:"parts"`
}

// PartitionMeta is one partition.
type PartitionMeta struct {
	// FirstBlock and Blocks are its run of blocks.
	FirstBlock int `json:"first_block"`
	Blocks     int `json:"blocks"`
	Rows       int `json:"rows"`
	// Edges are the in-edges and out-edges of its rows.
	Edges int64 `json:"edges"`
	Train int   `json:"train"`
	// Bytes of the store that are its rows'.
	Bytes int64 `json:"bytes"`
	// GhostsForward are the rows of others that it gathers, GhostsBackward those whose
	// gradients it gathers.
	GhostsForward  int64 `json:"ghosts_forward"`
	GhostsBackward int64 `json:"ghosts_backward"`
	// CutIn and CutOut are its edges from and to others.
	CutIn  int64 `json:"cut_in"`
	CutOut int64 `json:"cut_out"`
	// GhostBytes are 4 for each ghost row, both ways.
	GhostBytes int64 `json:"ghost_bytes"`
}
