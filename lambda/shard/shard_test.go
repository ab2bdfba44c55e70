package shard

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/kernels/ref"
	"dorylus/lambda/codec"
	"dorylus/lambda/wire"
)

const plenty = 1 << 20

// configs need everything that a shard can have.
var configs = map[string]model.Config{
	"dense":  {Model: "gcn", Layers: 2, Hidden: 3, Features: 2, Classes: 2, Bias: true},
	"sparse": {Model: "gcn", Layers: 2, Hidden: 3, Features: 4, Classes: 3, Sparse: true, MultiLabel: true, InputDropout: 0.5, Dropout: 0.5, Bias: true},
}

// sample is an interval of two blocks, of two rows and one, at every level.
func sample(t testing.TB, cfg model.Config, pass engine.Pass) (*model.Program, *Shard) {
	t.Helper()
	prog, err := cfg.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := &Shard{Pass: pass, Interval: 3, Seed: 5, Train: pass == engine.Training, FirstBlock: 6, LossScale: 0.5, Const: make([]*kernels.Mat, len(prog.Bufs))}
	for k := range prog.Levels {
		s.Ptr = append(s.Ptr, []int{0, 2, 3})
		s.IDs = append(s.IDs, []int32{7, 8, 9})
		if k > 0 {
			s.Self = append(s.Self, []int32{0, 1, 2})
		}
	}
	for range 2 {
		s.Seen = append(s.Seen, make([][]int32, prog.Levels))
	}
	s.Seen[0][1] = []int32{0, 1}
	if s.Train {
		s.Labels = []int32{0, -1, 1}
		if cfg.MultiLabel {
			s.Labels = []int32{0, -1, 0}
			s.Targets = &kernels.CSR{Cols: cfg.Classes, RowPtr: []int64{0, 2, 2, 3}, Col: []int32{0, 2, 1}}
		}
		s.ClassW = mat(1, cfg.Classes)
	}
	if cfg.Sparse {
		s.Sparse = &kernels.CSR{Cols: cfg.Features, RowPtr: []int64{0, 1, 1, 3}, Col: []int32{3, 0, 2}, Val: []float32{1, 2, 3}}
	}
	for _, b := range s.works(prog) {
		if prog.Bufs[b].Const {
			s.Const[b] = mat(3, prog.Bufs[b].Cols)
		}
	}
	return prog, s
}

func mat(rows, cols int) *kernels.Mat {
	stride := kernels.PadCols(cols)
	m := &kernels.Mat{Rows: rows, Cols: cols, Stride: stride, Host: make([]float32, rows*stride)}
	for r := range rows {
		for c := range m.Row(r) {
			m.Row(r)[c] = float32(10*r + c)
		}
	}
	return m
}

func encode(t testing.TB, s *Shard) ([]byte, [][]byte) {
	t.Helper()
	return cut(t, s, plenty)
}

// cut is a shard's head and frames of at most size bytes each.
func cut(t testing.TB, s *Shard, size int) ([]byte, [][]byte) {
	t.Helper()
	enc, err := codec.NewEncoder(codec.Options{Codec: codec.None})
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Head()
	if err != nil {
		t.Fatal(err)
	}
	return head, slices.Collect(s.Frames(enc, size))
}

// decode reads a shard whose frames are all there.
func decode(head []byte, frames [][]byte, bufs int, limit int64) (*Shard, error) {
	r, err := NewReader(head, bufs, limit)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.Add(frames); err != nil {
		return nil, err
	}
	return r.Shard()
}

// each runs f on all configurations and passes.
func each(t *testing.T, f func(t *testing.T, cfg model.Config, pass engine.Pass)) {
	for name, cfg := range configs {
		for pass, of := range map[engine.Pass]string{engine.Training: "training", engine.Evaluation: "evaluation"} {
			t.Run(name+"/"+of, func(t *testing.T) { f(t, cfg, pass) })
		}
	}
}

func TestShardsComeBack(t *testing.T) {
	each(t, func(t *testing.T, cfg model.Config, pass engine.Pass) {
		prog, s := sample(t, cfg, pass)
		var got *Shard
		for _, size := range []int{1, 8, 20, plenty} {
			head, frames := cut(t, s, size)
			var err error
			if got, err = decode(head, frames, len(prog.Bufs), plenty); err != nil {
				t.Fatalf("in frames of %d bytes: %v", size, err)
			}
			if !reflect.DeepEqual(got, s) {
				t.Errorf("in %d frames of %d bytes: got  %+v\nwant %+v", len(frames), size, got, s)
			}
		}
		if err := got.Fits(&cfg, prog, plenty); err != nil {
			t.Error(err)
		}
	})
}

// Bytes is what Fits goes by; a device has to be asked for just that, and the lists take
// the rest.
func TestBytesAreThoseOfTheRoom(t *testing.T) {
	each(t, func(t *testing.T, cfg model.Config, pass engine.Pass) {
		prog, s := sample(t, cfg, pass)
		dev, err := ref.Open()
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(prog, dev)
		if err != nil {
			t.Fatal(err)
		}
		var want int64
		for _, m := range append(append(r.owned, s.Const...), s.ClassW) {
			if m != nil {
				want += 4 * int64(m.Rows) * int64(m.Stride)
			}
		}
		for _, v := range s.vectors() {
			want += 4 * int64(len(*v))
		}
		if s.Targets != nil {
			want += 4*8 + 3*4
		}
		if s.Sparse != nil {
			want += 4*8 + 3*(4+4)
		}
		need := s.Bytes(prog)
		if need != want {
			t.Errorf("%d bytes, want %d", need, want)
		}
		if err := s.Fits(&cfg, prog, need); err != nil {
			t.Errorf("in just as much memory as it needs: %v", err)
		}
		if err := s.Fits(&cfg, prog, need-1); err == nil || !strings.Contains(err.Error(), "more --intervals") {
			t.Errorf("in less memory than it needs: %v", err)
		}
		r.Close()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestShardsThatDoNotFitAreRefused(t *testing.T) {
	for says, change := range map[string]func(s *Shard){
		"pass 7":                          func(s *Shard) { s.Pass = 7 },
		"with training false":             func(s *Shard) { s.Train = false },
		"2 levels":                        func(s *Shard) { s.Ptr = s.Ptr[:2] },
		"1 buffers":                       func(s *Shard) { s.Const = s.Const[:1] },
		"sparse features: false":          func(s *Shard) { s.Sparse = nil },
		"level 1 has 2 ids":               func(s *Shard) { s.IDs[1] = s.IDs[1][:2] },
		"hop 0 has 4 rows":                func(s *Shard) { s.Self[0] = []int32{0, 0, 0, 0} },
		"number 1 is 3, want one in [0,3": func(s *Shard) { s.Self[0] = []int32{0, 3, 0} },
		"number 2 is -1":                  func(s *Shard) { s.Self[1] = []int32{0, 0, -1} },
		"number 0 is 1, want one in [0,1": func(s *Shard) { s.Seen[1][2] = []int32{1} },
		"0 labels":                        func(s *Shard) { s.Labels = nil },
		"2 labels":                        func(s *Shard) { s.Labels = s.Labels[:2] },
		"labels: number 0 is 3":           func(s *Shard) { s.Labels[0] = 3 },
		"labels: number 0 is -2":          func(s *Shard) { s.Labels[0] = -2 },
		"no targets":                      func(s *Shard) { s.Targets = nil },
		"targets are 3 x 2":               func(s *Shard) { s.Targets.Cols = 2 },
		"targets are 2 x 3":               func(s *Shard) { s.Targets.RowPtr = s.Targets.RowPtr[:3] },
		"class weights are 1 x 2":         func(s *Shard) { s.ClassW = mat(1, 2) },
		"features are 3 x 5":              func(s *Shard) { s.Sparse.Cols = 5 },
		"features are 2 x 4":              func(s *Shard) { s.Sparse.RowPtr = s.Sparse.RowPtr[:3] },
		"buffer X is 2 x 4":               func(s *Shard) { s.Const[model.X] = mat(2, 4) },
		"which is not constant":           func(s *Shard) { s.Const[len(s.Const)-1] = mat(3, 3) },
	} {
		cfg := configs["sparse"]
		prog, s := sample(t, cfg, engine.Training)
		change(s)
		if err := s.Fits(&cfg, prog, plenty); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %q", err, says)
		}
	}
	cfg := configs["dense"]
	prog, s := sample(t, cfg, engine.Evaluation)
	s.Const = make([]*kernels.Mat, len(s.Const))
	if err := s.Fits(&cfg, prog, plenty); err == nil || !strings.Contains(err.Error(), "are missing") {
		t.Errorf("without constant rows: %v", err)
	}
}

// Heads that ask for much and bring little are refused before anything is reserved; what
// they say is refused by name.
func TestSenselessShardsAreRefused(t *testing.T) {
	for says, change := range map[string]func(h *head, frames [][]byte) [][]byte{
		"no blocks":                  func(h *head, f [][]byte) [][]byte { h.Ptr = nil; return f },
		"ends at row 1, after 2":     func(h *head, f [][]byte) [][]byte { h.Ptr[0] = []int{0, 2, 1}; return f },
		"from [1] on":                func(h *head, f [][]byte) [][]byte { h.Ptr[1][0] = 1; return f },
		"lists, want":                func(h *head, f [][]byte) [][]byte { h.Vectors = h.Vectors[1:]; return f },
		"buffer -1 of":               func(h *head, f [][]byte) [][]byte { h.Const = []shape{{Buf: -1}}; return f },
		"frames too many":            func(h *head, f [][]byte) [][]byte { return append(f, nil) },
		"frames are missing":         func(h *head, f [][]byte) [][]byte { return f[:len(f)-1] },
		"more than the":              func(h *head, f [][]byte) [][]byte { h.Vectors[1] = 2_000_000_000; return f },
		"at most 1 x 1000000000":     func(h *head, f [][]byte) [][]byte { h.ClassW = 1_000_000_000; return f },
		"buffer 0 of -3 x 4":         func(h *head, f [][]byte) [][]byte { h.Const = []shape{{0, -3, 4}}; return f },
		"is column 2, want one in [": func(h *head, f [][]byte) [][]byte { h.Targets = 2; return f },
		"lengths of rows of 2000000000 x 1 ends behind row 0": func(h *head, f [][]byte) [][]byte {
			h.Ptr[2][2] = 2_000_000_000
			for i := range h.Vectors {
				h.Vectors[i] = -1
			}
			return nil
		},
	} {
		prog, s := sample(t, configs["sparse"], engine.Training)
		text, frames := encode(t, s)
		var h head
		if err := json.Unmarshal(text, &h); err != nil {
			t.Fatal(err)
		}
		frames = change(&h, frames)
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(text, frames, len(prog.Bufs), plenty); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %q", err, says)
		}
	}
}

// The order of chunks is counted, by who receives them; here frames are.
func TestMissingAndRepeatedFramesAreRefused(t *testing.T) {
	prog, s := sample(t, configs["sparse"], engine.Training)
	head, frames := cut(t, s, 8)
	for i := range frames {
		for what, in := range map[string][][]byte{
			"missing": slices.Delete(slices.Clone(frames), i, i+1),
			"twice":   slices.Insert(slices.Clone(frames), i, frames[i]),
		} {
			if got, err := decode(head, in, len(prog.Bufs), plenty); err == nil {
				t.Errorf("frame %d of %d %s: it was read as %+v", i, len(frames), what, got)
			}
		}
	}
	if _, err := NewReader(head, len(prog.Bufs), 0); err != nil {
		t.Errorf("without memory, before the first frame: %v", err)
	}
}

func TestDecodeKeepsToItsLimit(t *testing.T) {
	prog, s := sample(t, configs["sparse"], engine.Training)
	head, frames := encode(t, s)
	least := 0
	for least < plenty {
		if _, err := decode(head, frames, len(prog.Bufs), int64(least)); err == nil {
			break
		}
		least++
	}
	var buffers int64
	for _, b := range s.works(prog) {
		if !prog.Bufs[b].Const {
			buffers += padded(s.shape(prog, b))
		}
	}
	// The lengths of the rows of both sparse matrices are there for a while too.
	if want := s.Bytes(prog) - buffers + 2*3*4; int64(least) != want {
		t.Errorf("it is read within %d bytes, want %d", least, want)
	}
}

func FuzzDecode(f *testing.F) {
	var prog *model.Program
	cfg := configs["sparse"]
	for _, pass := range []engine.Pass{engine.Training, engine.Evaluation} {
		var s *Shard
		prog, s = sample(f, cfg, pass)
		for _, size := range []int{8, plenty} {
			head, frames := cut(f, s, size)
			b, err := (&wire.Message{Shard: &wire.Shard{Head: head}, Parts: frames}).Append(nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	dev, err := ref.Open()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wire.Parse(b)
		if err != nil || m.Shard == nil {
			return
		}
		s, err := decode(m.Shard.Head, m.Parts, len(prog.Bufs), plenty)
		if err != nil || s.Fits(&cfg, prog, plenty) != nil {
			return
		}
		r, err := s.Open(prog, dev)
		if err != nil {
			t.Fatalf("it fits and does not open: %v", err)
		}
		for _, c := range r.Contexts {
			for buf, m := range r.Full {
				if m != nil && !prog.Bufs[buf].Edges {
					c.Mat(buf)
				}
			}
		}
		r.Close()
	})
}
