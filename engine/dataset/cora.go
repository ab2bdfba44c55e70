package dataset

import (
	"archive/zip"
	"bytes"
	"context"
	_ "embed"
	"fmt"
)

// coraZip is the Planetoid files of Cora; cora.NOTICE gives their origin and licence.
//
//go:embed cora.zip
var coraZip []byte

// Cora is the built-in data set: 2,708 papers, 5,278 citation links, 1,433 words, 7
// classes, and the public split of 140, 500 and 1,000 papers.
func Cora() (*Raw, error) {
	z, err := zip.NewReader(bytes.NewReader(coraZip), int64(len(coraZip)))
	if err != nil {
		return nil, fmt.Errorf("open built-in data set cora: %w", err)
	}
	return readPlanetoid(context.Background(), &input{fsys: z, path: ".", src: "cora", dir: true})
}
