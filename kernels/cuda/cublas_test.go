package cuda

import (
	"slices"
	"strings"
	"testing"

	"dorylus/kernels/spill"
)

// TestCUBLASFiles: no library newer than the driver is tried, and a file that is named is
// the only one.
func TestCUBLASFiles(t *testing.T) {
	for _, c := range []struct {
		path   string
		driver int
		want   []string
	}{
		{"/opt/libcublas.so", 13000, []string{"/opt/libcublas.so"}},
		{"", 13010, []string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}},
		{"", 15000, []string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}},
		{"", 12080, []string{"libcublas.so.12", "libcublas.so.11"}},
		{"", 10020, []string{"libcublas.so.11"}},
	} {
		if got := cublasFiles(c.path, c.driver); !slices.Equal(got, c.want) {
			t.Errorf("%q, driver %d: %v, want %v", c.path, c.driver, got, c.want)
		}
	}
}

// TestCUBLASIsOfTheDriver: the library of the tests does not meet a GPU, nor a real one
// the emulated device.
func TestCUBLASIsOfTheDriver(t *testing.T) {
	for _, c := range []struct {
		device, library bool // emulated
		want            string
	}{
		{true, true, ""}, {false, false, ""},
		{true, false, "libcublas.so.12 is for GPUs, the driver D is for the emulated device of the tests; name another in DORYLUS_CUBLAS"},
		{false, true, "libcublas.so.12 is for the emulated device of the tests, the driver D is for GPUs"},
	} {
		d := &fakeDriver{info: driverInfo{Library: "D", Version: 12080, Emulated: c.device}, loads: map[string]bool{"libcublas.so.12": true, "emulated": c.library}}
		_, err := openCUBLAS(d, "")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("device emulated %v, library %v: %v, want %q", c.device, c.library, err, c.want)
		}
	}
	_, err := openCUBLAS(&fakeDriver{info: driverInfo{Version: 12080}}, "")
	for _, want := range []string{"no cuBLAS can be used: searched [libcublas.so.12 libcublas.so.11]", "nvidia-cublas-cu12", CUBLASEnv, "--gpu-products=own"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("none is there: %v, want %q", err, want)
		}
	}
}

// TestCUBLASIsPlanned: a plan counts the library's workspace, which the pool hands out.
func TestCUBLASIsPlanned(t *testing.T) {
	limit := int64(chunkBytes*chunkCount + cublasWorkspace + marginLeast)
	for products, resident := range map[string]bool{OwnProducts: true, CUBLASProducts: false} {
		p := MakePlan(spill.Budget{Limit: limit}, products, []spill.Need{{Name: "rows", Bytes: 4096}}, nil)
		if (p.Verdict == spill.Resident) != resident {
			t.Errorf("products %s on a device of %d: %v, resident should be %v", products, limit, p.Verdict, resident)
		}
		if named := strings.Contains(p.String(), "workspace of cuBLAS"); named != (products == CUBLASProducts) {
			t.Errorf("products %s: the plan names the workspace: %v\n%s", products, named, p)
		}
	}
}
