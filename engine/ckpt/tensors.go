package ckpt

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nlpodyssey/safetensors"
)

// encode is a safetensors file of float32 tensors, the same bytes for the same
// tensors. Its metadata says "pt", which some loaders insist on.
func encode(tensors []Named, epoch int) ([]byte, error) {
	views := make(map[string]safetensors.TensorView, len(tensors))
	for _, t := range tensors {
		if _, twice := views[t.Name]; twice {
			return nil, fmt.Errorf("two tensors are named %s", t.Name)
		}
		shape, n := make([]uint64, len(t.Shape)), 1
		for i, d := range t.Shape {
			shape[i], n = uint64(d), n*d
		}
		if n != len(t.Data) {
			return nil, fmt.Errorf("tensor %s of shape %v has %d values", t.Name, t.Shape, len(t.Data))
		}
		raw := make([]byte, 0, 4*n)
		for _, x := range t.Data {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		v, err := safetensors.NewTensorView(safetensors.F32, shape, raw)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		views[t.Name] = v
	}
	return safetensors.Serialize(views, map[string]string{"format": "pt", "epoch": strconv.Itoa(epoch)})
}

// decode reads what encode wrote, in name order.
func decode(file []byte) ([]Named, error) {
	st, err := safetensors.Deserialize(file)
	if err != nil {
		return nil, err
	}
	tensors := make([]Named, 0, st.Len())
	for _, v := range st.Tensors() {
		if v.TensorView.DType() != safetensors.F32 {
			return nil, fmt.Errorf("tensor %s is of type %s, want F32", v.Name, v.TensorView.DType())
		}
		t := Named{Name: v.Name}
		for _, d := range v.TensorView.Shape() {
			if d > math.MaxInt32 {
				return nil, fmt.Errorf("tensor %s is of shape %v", v.Name, v.TensorView.Shape())
			}
			t.Shape = append(t.Shape, int(d))
		}
		raw := v.TensorView.Data()
		t.Data = make([]float32, len(raw)/4)
		for i := range t.Data {
			t.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		tensors = append(tensors, t)
	}
	slices.SortFunc(tensors, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return tensors, nil
}
