//go:build !metis || !cgo || !unix

package metis

// Linked says whether Partition works.
func Linked() bool { return false }

// Partition returns ErrNotLinked.
func Partition(n int, rowPtr []int64, col []int32, parts int, seed uint64) ([]int32, error) {
	return nil, ErrNotLinked
}
