package ref_test

import (
	"testing"

	"dorylus/kernels/kerneltest"
	"dorylus/kernels/ref"
)

func TestConformance(t *testing.T) { kerneltest.Run(t, ref.Open) }

func BenchmarkRef(b *testing.B) { kerneltest.Benchmark(b, ref.Open) }
