package cuemu

import (
	"os"
	"testing"
)

// GPUEnv is the environment variable that hands tests to a real GPU: "1", or
// "emulated" where an emulated device may stand in, as in the tests of the tests.
const GPUEnv = "DORYLUS_TEST_GPU"

// OnGPU says whether tests are to run on a GPU, as make test-gpu has them. They must
// then fail without one.
func OnGPU() bool { return os.Getenv(GPUEnv) != "" }

// Driver is the driver that a test of the GPU path opens: the emulated device, or with
// OnGPU the one that DORYLUS_CUDA_DRIVER names, "" for this machine's.
func Driver(t testing.TB) string {
	t.Helper()
	if OnGPU() {
		return os.Getenv("DORYLUS_CUDA_DRIVER")
	}
	return Build(t)
}
