package params

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"dorylus/engine/model"
	"dorylus/kernels"
)

func TestInitParams(t *testing.T) {
	specs := []model.ParamSpec{
		{Name: "a", Rows: 300, Cols: 100, Init: model.Glorot},
		{Name: "b", Rows: 1, Cols: 100, Init: model.Zero},
		{Name: "c", Rows: 300, Cols: 100, Init: model.Glorot},
	}
	mats := InitParams(specs, 4)
	bound := math.Sqrt(6.0 / 400)
	var sum, squares, largest float64
	for _, x := range mats[0].Host {
		sum += float64(x)
		squares += float64(x) * float64(x)
		largest = max(largest, math.Abs(float64(x)))
	}
	n := float64(len(mats[0].Host))
	if largest > bound*(1+1e-7) || largest < bound*0.999 {
		t.Errorf("the largest value is %v, want just below %v", largest, bound)
	}
	// A uniform variable has deviation bound/√3; the mean of n has 1/√n of it.
	if d := bound / math.Sqrt(3); math.Abs(sum/n) > 4*d/math.Sqrt(n) || math.Abs(squares/n/(d*d)-1) > 0.03 {
		t.Errorf("mean %v, variance %v, want 0 and %v", sum/n, squares/n, d*d)
	}
	for _, x := range mats[1].Host {
		if x != 0 {
			t.Fatalf("a bias starts at %v", x)
		}
	}
	if slices.Equal(mats[0].Host, mats[2].Host) {
		t.Error("two parameters of one shape start with the same values")
	}
	if slices.Equal(mats[0].Host, InitParams(specs, 5)[0].Host) {
		t.Error("two seeds give the same values")
	}
	if alone := InitParams(specs[2:], 4); !slices.Equal(alone[0].Host, mats[2].Host) {
		t.Error("a parameter's values depend on the parameters before it")
	}
}

// TestSHA256 spells the hash out on padded and transposed matrices.
func TestSHA256(t *testing.T) {
	specs := []model.ParamSpec{
		{Name: "z", Rows: 1, Cols: 2},
		{Name: "a", Rows: 2, Cols: 3, Transposed: true},
	}
	padded := &kernels.Mat{Rows: 2, Cols: 3, Stride: 5, Host: []float32{1, 2, 3, 9, 9, 4, 5, 6}}
	mats := []*kernels.Mat{kernels.FromSlice(1, 2, []float32{7, 8}), padded}
	var raw []byte
	for _, x := range []float32{1, 4, 2, 5, 3, 6, 7, 8} {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	sum := sha256.Sum256(raw)
	if got, want := SHA256(specs, mats), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestInitBits pins the generator: a seed's runs must repeat in every release.
func TestInitBits(t *testing.T) {
	got := SHA256(small, InitParams(small, 42))
	if want := "08dada5af13dc9ba9d224534b9c68a5fa1af3501fa6ed6616c0d5a28b391dcb7"; got != want {
		t.Errorf("the weights of seed 42 have hash %s, want %s", got, want)
	}
}
