//go:build !race && cgo && amd64

package native

func raceRead([]float32, int, int, int, int)                      {}
func raceWrite([]float32, int, int, int, int)                     {}
func raceRows([]float32, int, int, []int32, bool)                 {}
func raceEdges([]float32, []int64, int, int, bool)                {}
func raceSources([]int64, []int32, []float32, int, int, int, int) {}
func raceHalf([]uint16, int, bool)                                {}
func raceRow([]float32, int, int, bool)                           {}
func raceSome([]float32, int, int, []int32)                       {}
func raceAttend(*Attend, bool)                                    {}
func raceGather(*Gather)                                          {}
