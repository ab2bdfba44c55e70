package ckpt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxManifest bounds what is read as a manifest, in bytes.
const maxManifest = 64 << 20

// Latest is the folder of the newest complete checkpoint in dir. Where there is
// none the error is fs.ErrNotExist; one of which it cannot be known is another error.
func Latest(dir string) (string, error) {
	entries, err := list(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look for checkpoints in %s: %w", dir, short(err))
	}
	for _, e := range entries {
		if e.unknown != nil { // an older one may not be what is meant
			return "", fmt.Errorf("look at the checkpoint %s: its %s cannot be read: %w; give access to it, or remove the folder to use an older one",
				filepath.Join(dir, e.name), manifestFile, short(e.unknown))
		}
		if e.complete {
			return filepath.Join(dir, e.name), nil
		}
	}
	return "", fmt.Errorf("no complete checkpoint in %s: %w", dir, fs.ErrNotExist)
}

// Load reads and verifies a checkpoint. An error names the file and what is wrong
// with it, in one line.
func Load(path string) (*Checkpoint, error) {
	c, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	return c, nil
}

func load(path string) (*Checkpoint, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, short(err)
	} else if !info.IsDir() {
		return nil, errors.New("it is a file: a checkpoint is a folder with a manifest.json")
	}
	data, err := readAtMost(filepath.Join(path, manifestFile), maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no %s: it was never completed; use an older one", manifestFile)
	}
	if err != nil {
		return nil, short(err)
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	c := &Checkpoint{Epoch: m.Epoch, Identity: m.Identity, Optim: m.Optim, OptimStep: m.OptimStep, Best: m.Best, Extra: m.Extra}
	for _, f := range []struct {
		name string
		into *[]Named
	}{{weightsFile, &c.Weights}, {momentsFile, &c.Moments}, {bestFile, &c.BestWeights}} {
		info, ok := m.Files[f.name]
		if !ok {
			continue // decodeManifest has seen that it may be absent
		}
		if *f.into, err = readTensors(filepath.Join(path, f.name), info); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return c, nil
}

// readTensors reads a file that must be what the manifest says.
func readTensors(path string, want fileInfo) ([]Named, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("missing; use an older checkpoint")
	}
	if err != nil {
		return nil, short(err)
	}
	if info.Size() != want.Bytes {
		return nil, fmt.Errorf("has %d bytes, the manifest says %d: truncated or replaced; use an older checkpoint", info.Size(), want.Bytes)
	}
	data, err := readAtMost(path, want.Bytes)
	if err != nil {
		return nil, short(err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != want.SHA256 {
		return nil, fmt.Errorf("checksum is %.12s, the manifest says %.12s: damaged; use an older checkpoint", got, want.SHA256)
	}
	return decode(data)
}

// readAtMost reads a file that may not be longer than limit bytes.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is longer than %d bytes", filepath.Base(path), limit)
	}
	return data, nil
}
