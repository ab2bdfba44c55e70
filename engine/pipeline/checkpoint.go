package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"time"

	"dorylus/engine"
	"dorylus/engine/ckpt"
	"dorylus/engine/dataset"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// keepCheckpoints is how many checkpoints of a run stay on disk.
const keepCheckpoints = 3

// settings are what must not change when a run goes on: all that shapes the model
// and its training, but how long it lasts and how it is scheduled.
type settings struct {
	Model            model.Config `json:"model"`
	Optim            optim.Config `json:"optimizer"`
	Split            string       `json:"split"`
	BlockRows        int          `json:"block_rows"`
	Pipeline         string       `json:"pipeline"`
	TrainFingerprint string       `json:"train_rows"`
	ClassWeights     string       `json:"class_weights,omitempty"`
	Metric           string       `json:"metric,omitempty"`
	AllRows          bool         `json:"all_rows,omitempty"`
}

// Identify is what a checkpoint of this run says about it.
func Identify(c *engine.Config, st *store.Store, split dataset.Split, seed uint64) (ckpt.Identity, error) {
	cfg, err := ModelConfig(c, st)
	if err != nil {
		return ckpt.Identity{}, err
	}
	h := sha256.New()
	hashInts(h, split.Train)
	raw, err := json.Marshal(settings{
		Model: cfg, Optim: optimConfig(c).WithDefaults(), Split: split.Name, BlockRows: st.Meta.BlockRows, Pipeline: c.Pipeline, ClassWeights: c.ClassWeights, Metric: c.Metric, AllRows: !c.PruneRows,
		TrainFingerprint: hex.EncodeToString(h.Sum(nil))[:16],
	})
	return ckpt.Identity{
		Model: cfg.String(), Config: raw, Dataset: st.Meta.Name, Fingerprint: fingerprint(st), Seed: seed,
	}, err
}

// fingerprint is a hash of a store's contents: all offsets, labels and the order,
// and samples of edges and features, so that it costs little on large graphs.
func fingerprint(st *store.Store) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d %d %s\n", st.Meta.Vertices, st.Meta.Edges, st.Meta.Features, st.Meta.Classes, st.Meta.FeatureKind)
	hashInts(h, st.In.RowPtr)
	hashInts(h, st.Order)
	hashInts(h, st.Labels)
	hashInts(h, sample(st.In.Col))
	hashInts(h, bitsOf(sample(st.In.Val)))
	if st.Sparse != nil {
		hashInts(h, st.Sparse.RowPtr)
		hashInts(h, sample(st.Sparse.Col))
		hashInts(h, bitsOf(sample(st.Sparse.Val)))
	}
	if d := st.Dense; d != nil {
		for r := 0; r < d.Rows; r += d.Rows/1024 + 1 {
			hashInts(h, bitsOf(d.Row(r)))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sample is at most 65,536 values of x, evenly spread.
func sample[T any](x []T) []T {
	step := len(x)>>16 + 1
	out := make([]T, 0, len(x)/step+1)
	for i := 0; i < len(x); i += step {
		out = append(out, x[i])
	}
	return out
}

func bitsOf(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i, f := range x {
		out[i] = math.Float32bits(f)
	}
	return out
}

func hashInts[T int32 | int64 | uint32](h hash.Hash, x []T) {
	var buf [8192]byte
	b := buf[:0]
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
		if len(b) == len(buf) {
			h.Write(b)
			b = buf[:0]
		}
	}
	h.Write(b)
	h.Write([]byte{'|'})
}

// progress is a checkpoint's Extra: the trainer's own counters.
type progress struct {
	ValLoss   float64 `json:"best_val_loss"`
	HasLoss   bool    `json:"has_val_loss"`
	SinceBest int     `json:"evaluations_since_best"`
	Done      int     `json:"evaluations"`
	HasVal    bool    `json:"has_val"`
	HasTest   bool    `json:"has_test"`
}

// SaveTo is an Options.Save that keeps the newest checkpoints in dir and tells l
// of each.
func SaveTo(dir string, id ckpt.Identity, l engine.Listener) func(*State) error {
	return func(s *State) error {
		start := time.Now()
		c, err := s.checkpoint(id)
		if err != nil {
			return err
		}
		path, bytes, err := ckpt.Save(dir, c, keepCheckpoints)
		if err != nil {
			return err
		}
		l.Event(engine.Checkpointed{Epoch: c.Epoch, Path: path, Bytes: bytes, Took: time.Since(start).Seconds()})
		return nil
	}
}

func (s *State) checkpoint(id ckpt.Identity) (*ckpt.Checkpoint, error) {
	var set settings
	if err := json.Unmarshal(id.Config, &set); err != nil {
		return nil, err
	}
	prog, err := s.Model.Build()
	if err != nil {
		return nil, err
	}
	c := &ckpt.Checkpoint{Identity: id}
	s.Params.Save(c, prog.Params, set.Optim)
	b := s.Best
	if b.Epoch < 0 {
		return c, nil
	}
	c.Best = &ckpt.Best{Epoch: b.Epoch, Train: number(b.Train), Val: number(b.Val), Test: number(b.Test)}
	c.BestWeights = params.Export(prog.Params, b.Weights)
	raw, err := json.Marshal(progress{
		ValLoss: number(b.ValLoss), HasLoss: !math.IsNaN(b.ValLoss), SinceBest: b.SinceBest, Done: b.Done,
		HasVal: !math.IsNaN(b.Val), HasTest: !math.IsNaN(b.Test),
	})
	c.Extra = map[string]json.RawMessage{"progress": raw}
	return c, err
}

// number is x, or 0 where JSON has no word for it.
func number(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// Restore is the state that a checkpoint holds.
func Restore(c *ckpt.Checkpoint) (*State, error) {
	var set settings
	if err := json.Unmarshal(c.Config, &set); err != nil {
		return nil, fmt.Errorf("read the checkpoint's settings: %w", err)
	}
	prog, err := set.Model.Build()
	if err != nil {
		return nil, fmt.Errorf("build the checkpoint's model: %w", err)
	}
	s := &State{Model: set.Model, Seed: c.Seed, Best: Best{Epoch: -1}}
	if s.Params, err = params.FromCheckpoint(c, prog.Params, set.Optim); err != nil {
		return nil, err
	}
	if c.Best == nil {
		return s, nil
	}
	var p progress
	if err := json.Unmarshal(c.Extra["progress"], &p); err != nil {
		return nil, fmt.Errorf("read the checkpoint's counters: %w", err)
	}
	best, err := params.Import(prog.Params, c.BestWeights)
	if err != nil {
		return nil, err
	}
	s.Best = Best{
		Epoch: c.Best.Epoch, Train: c.Best.Train, Val: c.Best.Val, Test: c.Best.Test, ValLoss: p.ValLoss,
		SinceBest: p.SinceBest, Done: p.Done, Weights: best,
	}
	for _, x := range []struct {
		has bool
		p   *float64
	}{{p.HasVal, &s.Best.Val}, {p.HasTest, &s.Best.Test}, {p.HasLoss, &s.Best.ValLoss}} {
		if !x.has {
			*x.p = math.NaN()
		}
	}
	return s, nil
}

// BestWeights are the weights to predict with: those of the best evaluation, or
// the newest where none was made or final is asked for.
func (s *State) BestWeights(final bool) []*kernels.Mat {
	if final || s.Best.Weights == nil {
		return s.Params.Weights
	}
	return s.Best.Weights
}
