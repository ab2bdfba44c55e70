package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// results is the file of rows.
type results struct {
	What string `json:"what"`
	Rows []row  `json:"rows"`
}

const what = "test scores in per cent over seeds, with another split in each run where a set has several; std divides by runs-1"

// save puts rows into the file at path: they take the places of rows of the same
// gates; those of other gates stay, those of gates that are no more go. The order is
// that of list.
func save(path string, rows []row, list []gate) error {
	var old results
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("add rows to %s: %w; remove it or name another file", path, err)
	}
	all := results{What: what, Rows: []row{}}
	for _, g := range list {
		for _, from := range [][]row{rows, old.Rows} {
			if i := slices.IndexFunc(from, func(r row) bool { return r.Name == g.name }); i >= 0 {
				all.Rows = append(all.Rows, from[i])
				break
			}
		}
	}
	text, err = json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
