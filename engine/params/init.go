package params

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"sort"

	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/kernels"
)

// InitParams are the weights that a model starts with, in host memory: zero, one,
// or uniform in ±sqrt(6/(rows+cols)), which is PyG's glorot. A value depends on the
// seed, the parameter's name and the value's index, and on nothing else.
func InitParams(specs []model.ParamSpec, seed uint64) []*kernels.Mat {
	mats := make([]*kernels.Mat, len(specs))
	for p, spec := range specs {
		m := kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols))
		mats[p] = m
		switch spec.Init {
		case model.Zero:
			continue
		case model.One:
			for i := range m.Host {
				m.Host[i] = 1
			}
			continue
		}
		bound := math.Sqrt(6 / float64(spec.Rows+spec.Cols))
		key := nameKey(seed, spec.Name)
		for i := range m.Host {
			// The middles of 2⁵³ equal parts of (0,1): symmetrical about ½.
			u := (float64(mix(key+uint64(i)*golden)>>11) + 0.5) / (1 << 53)
			m.Host[i] = float32((2*u - 1) * bound)
		}
	}
	return mats
}

const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ over the golden ratio: an odd step that never repeats

// nameKey is a counter's start that belongs to one parameter of one seed.
func nameKey(seed uint64, name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return mix(mix(seed+golden) ^ binary.LittleEndian.Uint64(sum[:]))
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// SHA256 is the fingerprint of a model's weights, host matrices by parameter: hex,
// over the parameters in name order, each as it is exported (out x in where
// Transposed), float32 little-endian without padding. It is the hash of the
// tensors of weights.safetensors in name order.
func SHA256(specs []model.ParamSpec, mats []*kernels.Mat) string {
	kernels.CheckHost("SHA256", mats...)
	order := make([]int, len(specs))
	for p := range order {
		order[p] = p
	}
	sort.Slice(order, func(i, j int) bool { return specs[order[i]].Name < specs[order[j]].Name })
	h := sha256.New()
	var buf []byte
	for _, p := range order {
		buf = buf[:0]
		for _, x := range exported(specs[p], mats[p]) {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
		}
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// exported is the values of m in the orientation in which they are written.
func exported(spec model.ParamSpec, m *kernels.Mat) []float32 {
	if !spec.Transposed {
		return optim.Packed(m)
	}
	return transpose(m.Rows, m.Cols, optim.Packed(m))
}

// transpose is a rows x cols matrix turned around, both packed.
func transpose(rows, cols int, x []float32) []float32 {
	y := make([]float32, len(x))
	for r := range rows {
		for c := range cols {
			y[c*rows+r] = x[r*cols+c]
		}
	}
	return y
}
