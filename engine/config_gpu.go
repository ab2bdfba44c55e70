package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// GPUNumbers reads Config.GPU: the numbers of the GPUs to train on, or nil for "auto".
func GPUNumbers(text string) ([]int, error) {
	if text == "auto" {
		return nil, nil
	}
	var numbers []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		switch {
		case err != nil || n < 0:
			return nil, fmt.Errorf("%q is no number of a GPU; give auto, 0 or 0,1", word)
		case slices.Contains(numbers, n):
			return nil, fmt.Errorf("GPU %d is there twice; name each once", n)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// memoryUnits are the units of Config.GPUMemory in bytes.
var memoryUnits = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// GPUMemoryLimit reads Config.GPUMemory, a share of the memory that is free or a number of
// bytes, and returns bytes. A number above what is free is an error.
func GPUMemoryLimit(text string, free int64) (int64, error) {
	lower := strings.ToLower(strings.TrimSpace(text))
	if digits, ok := strings.CutSuffix(lower, "%"); ok {
		x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(x > 0 && x <= 100) {
			return 0, fmt.Errorf("%q is no share; give more than 0%% and at most 100%%", text)
		}
		return int64(x / 100 * float64(free)), nil
	}
	for _, u := range memoryUnits {
		digits, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		bytes := x * u.bytes
		switch {
		case err != nil || !(bytes >= 1) || bytes >= 1<<62:
			return 0, fmt.Errorf("%q is no amount of memory; write 90%%, 12GiB, 500MiB or a number of bytes", text)
		case int64(bytes) > free:
			return 0, fmt.Errorf("%d bytes are more than the %d that are free", int64(bytes), free)
		}
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("%q is no amount of memory", text) // not reached: the last unit is ""
}

// checkGPU checks what only GPUs are told, and that other modes are not asked for it.
func (c Config) checkGPU(k *checker) {
	if _, err := GPUNumbers(c.GPU); err != nil {
		k.bad("gpu", c.GPU, "%v", err)
	}
	if _, err := GPUMemoryLimit(c.GPUMemory, 1<<62); err != nil {
		k.bad("gpu-memory", c.GPUMemory, "%v", err)
	}
	k.oneOf("precision", c.Precision, Precisions)
	k.oneOf("gpu-products", c.GPUProducts, GPUProducts)
	if c.Mode == "gpu" {
		if c.Device != "auto" {
			k.bad("device", c.Device, "it chooses kernels of the processor; with --mode=gpu choose the device by --gpu")
		}
		return
	}
	if c.Precision != "fp32" && slices.Contains(Precisions, c.Precision) {
		k.bad("precision", c.Precision, "--mode=%s computes in fp32 only; leave it out, or add --mode=gpu", c.Mode)
	}
	if c.GPUProducts != "own" && slices.Contains(GPUProducts, c.GPUProducts) {
		k.bad("gpu-products", c.GPUProducts, "--mode=%s uses no GPU; leave it out, or add --mode=gpu", c.Mode)
	}
	if c.GPUMemory != "90%" {
		k.bad("gpu-memory", c.GPUMemory, "--mode=%s uses no GPU; leave it out, or add --mode=gpu", c.Mode)
	}
	if c.GPU != "auto" {
		k.bad("gpu", c.GPU, "--mode=%s uses no GPU; leave it out, or add --mode=gpu", c.Mode)
	}
}
