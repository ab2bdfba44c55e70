package pserver

import (
	"dorylus/engine/model"
	"dorylus/kernels"
)

// Slice is the rows of one parameter that a shard has.
type Slice struct {
	Param int
	Rows  kernels.Span
}

// tiny is the number of values up to which a parameter is not cut: the message costs more
// than its values.
const tiny = 1024

// Layout is what each of several shards has of a model: the values of all parameters, one
// behind the other, in equal parts, but for what is cut between rows only and what is
// tiny. It depends on nothing else. Each shard has one run of rows of a parameter at most;
// those there is nothing left for have none.
func Layout(specs []model.ParamSpec, shards int) [][]Slice {
	var total int64
	for _, s := range specs {
		total += values(s)
	}
	out := make([][]Slice, shards)
	k, begin := 0, int64(0) // the shard that is being filled, the value that s begins with
	for p, s := range specs {
		lo, n := 0, values(s)
		for ; k < shards-1; k++ {
			end := total/int64(shards)*int64(k+1) + total%int64(shards)*int64(k+1)/int64(shards)
			if end > begin+n {
				break
			}
			hi := cut(s, end-begin)
			out[k] = appendSlice(out[k], p, lo, hi)
			lo = max(lo, hi)
		}
		out[k] = appendSlice(out[k], p, lo, s.Rows)
		begin += n
	}
	return out
}

func values(s model.ParamSpec) int64 { return int64(s.Rows) * int64(s.Cols) }

// cut is the row before which to cut a parameter that should be cut at a value.
func cut(s model.ParamSpec, at int64) int {
	n := values(s)
	if n <= tiny {
		if 2*at < n {
			return 0
		}
		return s.Rows
	}
	return min(int((at+int64(s.Cols)/2)/int64(s.Cols)), s.Rows)
}

func appendSlice(to []Slice, p, lo, hi int) []Slice {
	if hi <= lo {
		return to
	}
	return append(to, Slice{Param: p, Rows: kernels.Span{Lo: lo, Hi: hi}})
}

// sliced are the specifications of slices, as parameters of their own.
func sliced(specs []model.ParamSpec, slices []Slice) []model.ParamSpec {
	out := make([]model.ParamSpec, len(slices))
	for i, s := range slices {
		out[i] = specs[s.Param]
		out[i].Rows = s.Rows.Len()
	}
	return out
}

// part is a slice's rows of mats, which are by parameter.
func part(mats []*kernels.Mat, s Slice) *kernels.Mat { return mats[s.Param].Sub(s.Rows) }

// newMats are host matrices of the parameters' shapes.
func newMats(specs []model.ParamSpec) []*kernels.Mat {
	out := make([]*kernels.Mat, len(specs))
	for p, s := range specs {
		out[p] = kernels.FromSlice(s.Rows, s.Cols, make([]float32, s.Rows*s.Cols))
	}
	return out
}
