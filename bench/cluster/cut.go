package main

import (
	"encoding/json"
	"fmt"
)

// partition is what check says of a graph server's part.
type partition struct {
	FirstBlock     int   `json:"first_block"`
	Blocks         int   `json:"blocks"`
	Rows           int   `json:"rows"`
	Train          int   `json:"train"`
	GhostsForward  int64 `json:"ghosts_forward"`
	GhostsBackward int64 `json:"ghosts_backward"`
}

// cut is what check says of a store on so many graph servers.
type cut struct {
	CutFraction float64     `json:"cut_fraction"`
	GhostBytes  int64       `json:"ghost_bytes"` // of one column, if every row is computed
	Parts       []partition `json:"parts"`
}

func (l *lab) cut(store string, servers int) (cut, error) {
	text, err := l.call("check", store, fmt.Sprintf("--partitions=%d", servers), "--json")
	if err != nil {
		return cut{}, err
	}
	var s struct {
		Partitions cut `json:"partitions"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return cut{}, fmt.Errorf("read what check says of %s: %w", store, err)
	}
	if len(s.Partitions.Parts) != servers {
		return cut{}, fmt.Errorf("check tells of %d partitions of %s, want %d", len(s.Partitions.Parts), store, servers)
	}
	return s.Partitions, nil
}
