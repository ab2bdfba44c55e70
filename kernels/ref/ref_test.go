package ref_test

import (
	"testing"

	"dorylus/kernels/kerneltest"
	"dorylus/kernels/ref"
)

func TestConformance(t *testing.T) { kerneltest.Run(t, ref.Open) }
