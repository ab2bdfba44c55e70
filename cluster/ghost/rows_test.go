package ghost_test

import (
	"dorylus/engine"
	"dorylus/kernels"
)

func matOf(m *engine.RowMsg) *kernels.Mat {
	return &kernels.Mat{Rows: len(m.Data) / m.Cols, Cols: m.Cols, Stride: m.Cols, Host: m.Data}
}
