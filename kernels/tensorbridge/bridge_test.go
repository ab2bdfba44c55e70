package tensorbridge

import (
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// TestStarts: that this test runs at all shows that a program which imports
// tensor starts; without the pinned guard package its init panics.
func TestStarts(t *testing.T) {
	d := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float32{1, 2, 3, 4}))
	if got := d.Float32s()[3]; got != 4 {
		t.Errorf("a tensor's last value is %v, want 4", got)
	}
}

func count32(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return x
}

func dense(t *testing.T, shape ...int) *tensor.Dense {
	t.Helper()
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(count32(tensor.Shape(shape).TotalSize())))
}

// transposed, columns and stepped are the ways in which tensors refer to memory.
func transposed(t *testing.T, d *tensor.Dense) *tensor.Dense {
	t.Helper()
	if err := d.T(); err != nil {
		t.Fatal(err)
	}
	return d
}

func sliced(t *testing.T, d *tensor.Dense, s ...tensor.Slice) *tensor.Dense {
	t.Helper()
	v, err := d.Slice(s...)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*tensor.Dense)
}

// values are what tensor itself says is at each place.
func values(t *testing.T, d *tensor.Dense) []float32 {
	t.Helper()
	s := d.Shape()
	if len(s) == 1 {
		s = tensor.Shape{1, s[0]}
	}
	var all []float32
	for r := range s[0] {
		for c := range s[1] {
			at := []int{r, c}
			if len(d.Shape()) == 1 {
				at = []int{c}
			}
			v, err := d.At(at...)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, v.(float32))
		}
	}
	return all
}

var shapes = []struct {
	name string
	make func(t *testing.T) *tensor.Dense
	view bool // can be seen without a copy
}{
	{"matrix", func(t *testing.T) *tensor.Dense { return dense(t, 3, 5) }, true},
	{"vector", func(t *testing.T) *tensor.Dense { return dense(t, 4) }, true},
	{"row", func(t *testing.T) *tensor.Dense { return dense(t, 1, 4) }, true},
	{"column", func(t *testing.T) *tensor.Dense { return dense(t, 4, 1) }, true},
	{"columns 1 to 4", func(t *testing.T) *tensor.Dense { return sliced(t, dense(t, 3, 5), nil, tensor.S(1, 4)) }, true},
	{"rows 1 to 3", func(t *testing.T) *tensor.Dense { return sliced(t, dense(t, 4, 5), tensor.S(1, 3)) }, true},
	{"one row", func(t *testing.T) *tensor.Dense { return sliced(t, dense(t, 4, 5), tensor.S(2)) }, true},
	{"one column", func(t *testing.T) *tensor.Dense { return sliced(t, dense(t, 4, 5), nil, tensor.S(2)) }, false},
	{"transposed", func(t *testing.T) *tensor.Dense { return transposed(t, dense(t, 3, 5)) }, false},
	{"column-major", func(t *testing.T) *tensor.Dense {
		return tensor.New(tensor.WithShape(3, 5), tensor.AsFortran(count32(15)))
	}, false},
	{"every second row", func(t *testing.T) *tensor.Dense { return sliced(t, dense(t, 6, 5), tensor.S(0, 6, 2)) }, true},
	{"every second column", func(t *testing.T) *tensor.Dense { return sliced(t, dense(t, 3, 6), nil, tensor.S(0, 6, 2)) }, false},
}

// TestCopyAndView: a copy holds what tensor says; a view holds the same and
// shares its memory, or is refused.
func TestCopyAndView(t *testing.T) {
	for _, s := range shapes {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			d := s.make(t)
			want := values(t, d)
			m, err := Copy(d)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Host, want) {
				t.Errorf("Copy of %v (strides %v) is %v, want %v", d.Shape(), d.Strides(), m.Host, want)
			}
			v, err := View(d)
			if (err == nil) != s.view {
				t.Fatalf("View of %v (strides %v): %v, want a view: %v", d.Shape(), d.Strides(), err, s.view)
			}
			if err != nil {
				return
			}
			kernels.CheckZero(v) // memory behind every row
			var got []float32
			for r := range v.Rows {
				got = append(got, v.Row(r)...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("View of %v (strides %v) is %v, want %v", d.Shape(), d.Strides(), got, want)
			}
			v.Row(v.Rows - 1)[v.Cols-1] = -7
			if now := values(t, d); now[len(now)-1] != -7 {
				t.Errorf("writing to the view left the tensor at %v", now)
			}
		})
	}
}

// TestRefused: what is no float32 matrix.
func TestRefused(t *testing.T) {
	for says, d := range map[string]*tensor.Dense{
		"matrices hold float32": tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{1, 2, 3, 4})),
		"3 dimensions":          dense(t, 2, 2, 2),
	} {
		if _, err := View(d); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("View: %v, want an error that says %q", err, says)
		}
		if _, err := Copy(d); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Copy: %v, want an error that says %q", err, says)
		}
	}
	for says, m := range map[string]*kernels.Mat{
		"rows are 16 apart":  {Rows: 2, Cols: 3, Stride: 16, Host: make([]float32, 19)},
		"no empty shapes":    {Rows: 0, Cols: 3, Stride: 3},
		"not in host memory": {Rows: 2, Cols: 3, Stride: 3, Addr: 64},
	} {
		if _, err := Dense(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Dense: %v, want an error that says %q", err, says)
		}
	}
}

// TestDense: a packed matrix becomes a tensor of the same memory.
func TestDense(t *testing.T) {
	m := kernels.FromSlice(2, 3, count32(6))
	d, err := Dense(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetAt(float32(9), 1, 2); err != nil {
		t.Fatal(err)
	}
	if m.Host[5] != 9 {
		t.Errorf("writing to the tensor left the matrix at %v", m.Host)
	}
}

// TestPutGet: there and back through a device's padded memory.
func TestPutGet(t *testing.T) {
	dev, s := openRef(t)
	m, err := dev.Alloc(5, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Free(m)
	d := transposed(t, dense(t, 3, 5))
	if err := Put(s, m, d); err != nil {
		t.Fatal(err)
	}
	back, err := Get(s, m)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(back.Float32s(), values(t, d)) {
		t.Errorf("came back as %v, want %v", back.Float32s(), values(t, d))
	}
	if err := Put(s, m, dense(t, 3, 5)); err == nil || !strings.Contains(err.Error(), "shapes differ") {
		t.Errorf("Put of 3 x 5 into 5 x 3: %v, want an error", err)
	}
}

// openRef is a reference device and stream that the test's end closes.
func openRef(t *testing.T) (kernels.Device, kernels.Stream) {
	t.Helper()
	dev, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev, s
}
