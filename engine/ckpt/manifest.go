package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"dorylus/engine/optim"
)

// Format is the version of the checkpoint format that this package writes.
const Format = 1

// The files of a checkpoint; manifestFile is written last and makes it one.
const (
	weightsFile  = "weights.safetensors"
	momentsFile  = "optimizer.safetensors"
	bestFile     = "best.safetensors"
	manifestFile = "manifest.json"
)

// manifest is manifest.json.
type manifest struct {
	Format int `json:"format"`
	Epoch  int `json:"epoch"`
	Identity
	Optim     optim.Config               `json:"optimizer"`
	OptimStep int                        `json:"optimizer_step"`
	Best      *Best                      `json:"best,omitempty"`
	Extra     map[string]json.RawMessage `json:"extra,omitempty"`
	Files     map[string]fileInfo        `json:"files"`
}

// fileInfo is what a file must be.
type fileInfo struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// encodeManifest is manifest.json for c and its files.
func encodeManifest(c *Checkpoint, files map[string]fileInfo) ([]byte, error) {
	b, err := json.MarshalIndent(&manifest{
		Format: Format, Epoch: c.Epoch, Identity: c.Identity, Optim: c.Optim, OptimStep: c.OptimStep,
		Best: c.Best, Extra: c.Extra, Files: files,
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// decodeManifest reads manifest.json and checks what it says of itself.
func decodeManifest(data []byte) (*manifest, error) {
	var version struct {
		Format *int `json:"format"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	switch {
	case version.Format == nil:
		return nil, errors.New("it has no format: not a checkpoint's")
	case *version.Format > Format:
		return nil, fmt.Errorf("format %d is newer than this program, which reads up to %d: use a newer one", *version.Format, Format)
	case *version.Format < 1:
		return nil, fmt.Errorf("format %d is none: the first is 1", *version.Format)
	}
	var m manifest
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("damaged: more follows its end")
	}
	if m.Epoch < 0 || m.OptimStep < 0 {
		return nil, fmt.Errorf("damaged: epoch %d, optimizer step %d", m.Epoch, m.OptimStep)
	}
	want := []string{weightsFile, momentsFile}
	if m.Best != nil {
		want = append(want, bestFile)
	}
	for _, name := range want {
		if f, ok := m.Files[name]; !ok || f.Bytes < 0 {
			return nil, fmt.Errorf("damaged: it does not describe %s", name)
		}
	}
	if len(m.Files) != len(want) {
		return nil, fmt.Errorf("damaged: it describes %d files, want %v", len(m.Files), want)
	}
	return &m, nil
}
