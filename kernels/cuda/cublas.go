package cuda

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

// CUBLASEnv is the environment variable that names a file of cuBLAS to open instead of
// one that the system finds.
const CUBLASEnv = "DORYLUS_CUBLAS"

// cublasWorkspace is device memory that cuBLAS is given for its products, on every device
// the same: what NVIDIA advises for the largest. With a workspace of its own, one stream
// and no atomics the library promises the same bits each time on one model of GPU.
const cublasWorkspace = 32 << 20

// The versions of cuBLAS that are looked for. One that is newer than the driver does not
// start.
const (
	oldestCUBLAS = 11
	newestCUBLAS = 13
)

// cublasFiles are the libraries to try, the newest first: path, if it is not "", or what
// the system finds of the versions that a driver takes.
func cublasFiles(path string, driver int) []string {
	if path != "" {
		return []string{path}
	}
	var files []string
	for v := min(newestCUBLAS, max(driver/1000, oldestCUBLAS)); v >= oldestCUBLAS; v-- {
		files = append(files, fmt.Sprintf("libcublas.so.%d", v))
	}
	return files
}

// openCUBLAS loads the library. Loading needs no device, and says nothing of whether the
// library can use one.
func openCUBLAS(d driver, path string) (library, error) {
	const next = "install cuBLAS of the driver's CUDA version, for example the package libcublas of NVIDIA's archives or nvidia-cublas-cu12 of PyPI, " +
		"name its file in " + CUBLASEnv + " if the system does not find it, or use --gpu-products=own"
	l, err := d.CUBLAS(cublasFiles(path, d.Info().Version))
	if err != nil {
		return nil, fmt.Errorf("no cuBLAS can be used: %w; %s", err, next)
	}
	if l.Emulated() != d.Info().Emulated {
		what := map[bool]string{true: "for the emulated device of the tests", false: "for GPUs"}
		return nil, fmt.Errorf("no cuBLAS can be used: %s is %s, the driver %s is %s; name another in %s, or use --gpu-products=own",
			l.File(), what[l.Emulated()], d.Info().Library, what[d.Info().Emulated], CUBLASEnv)
	}
	return l, nil
}

// LibraryError is a failed call of cuBLAS.
type LibraryError struct {
	Op     string // the library's function
	Status int
	Text   string // the library's own; may be ""
}

func (e *LibraryError) Error() string {
	say, next := "the library reports an error", "run dorylus-engine devices --selftest --gpu-products=cublas, or use --gpu-products=own"
	switch e.Status {
	case 1:
		say, next = "the library does not start", "see whether it is of the driver's CUDA version or an older one, or use --gpu-products=own"
	case 3:
		say, next = "the library finds no memory for itself", "leave it some: --gpu-memory=70%, or use --gpu-products=own"
	case 8:
		say, next = "the library has no code for this GPU", "install another version, or use --gpu-products=own"
	case 13:
		say = "a product could not be run"
	}
	text := ""
	if e.Text != "" {
		text = ": " + e.Text
	}
	return fmt.Sprintf("%s: %s (cuBLAS status %d%s); %s", e.Op, say, e.Status, text, next)
}

// product is dst = a·b as GEMM has it, over k values, or dst + a·b.
type product struct {
	dst, a, b mat
	k         int
	t         kernels.Trans
	precision string
	add       bool
}

// byLibrary makes the product by cuBLAS, and its epilogue, if there is one, by a kernel
// after it.
func (p product) byLibrary(e epi, epilogue bool) func(*runner) error {
	return func(x *runner) error {
		switch {
		case p.dst.rows == 0 || p.dst.cols == 0:
			return nil
		case p.k > 0:
			for _, m := range []mat{p.dst, p.a, p.b} {
				if m.ld > math.MaxInt32 {
					return fmt.Errorf("rows %d values apart, cuBLAS takes at most %d; use --gpu-products=own", m.ld, math.MaxInt32)
				}
			}
			if err := x.products.GEMM(p); err != nil {
				return err
			}
		case !p.add:
			if err := x.zero(p.dst); err != nil {
				return err
			}
		}
		if !epilogue {
			return nil
		}
		return x.each("dk_forward", p.dst.rows, p.dst.cols, p.dst, p.dst, int64(0), int64(p.dst.rows), int32(p.dst.cols), shiftOf(p.dst.cols), e)
	}
}
