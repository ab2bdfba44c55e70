package order

import "math"

// The costs of the methods, on one core: the upper ends of what graphs of degree 10 to
// 100 with communities took (METIS 5.1.0). METIS needs memory for the mirrored graph and
// its own coarser ones; label propagation some numbers per vertex; streaming fewer.
const (
	metisSecondsPerEdge   = 1e-6 // per directed edge
	metisSecondsPerVertex = 5e-6
	metisBytesPerEdge     = 60
	metisBytesPerVertex   = 100

	lpaSecondsPerEdge   = 2e-7
	lpaSecondsPerVertex = 2e-6
	lpaBytesPerVertex   = 48

	streamSecondsPerEdge   = 1.2e-7
	streamSecondsPerVertex = 1e-6
	streamBytesPerVertex   = 28
)

// Estimate is what a method is expected to take.
type Estimate struct {
	Method string `json:"method"`
	// Bytes beside the graph, Seconds on one core.
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// Refused says why auto does not take it, in words; "": it can.
	Refused string `json:"refused,omitempty"`
}

// estimate is what a method would take for g; nothing worth telling for those that only
// sort.
func (opt *Options) estimate(g Graph, method string) Estimate {
	n, e := float64(g.Rows()), float64(g.In.Edges())
	est := Estimate{Method: method, Bytes: 8 * int64(n)} // the order and its inverse
	sampled := math.Min(e, n*streamNeighbour)
	switch method {
	case METIS:
		est.Seconds = e*metisSecondsPerEdge + n*metisSecondsPerVertex
		est.Bytes = int64(e*metisBytesPerEdge + n*metisBytesPerVertex)
	case LPA:
		est.Seconds = sampled*lpaSecondsPerEdge + n*lpaSecondsPerVertex
		est.Bytes = int64(n) * (lpaBytesPerVertex + 4*int64(opt.Threads))
	case Stream, LDG, Fennel:
		est.Seconds = sampled*streamSecondsPerEdge + n*streamSecondsPerVertex
		est.Bytes = int64(n) * streamBytesPerVertex
	}
	return est
}

// announce tells what is about to be done.
func (opt *Options) announce(first Estimate, others []Estimate) {
	if opt.Announce != nil {
		opt.Announce(append([]Estimate{first}, others...))
	}
}
