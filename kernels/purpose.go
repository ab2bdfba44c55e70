package kernels

// Purpose is what a matrix is for. A device whose memory does not hold everything
// decides by it what to keep in the host's memory and to stream.
type Purpose uint8

// Purposes, in the order in which a device gives up holding them: the later of these,
// the more often an epoch reads it, and Weights and Other are never given up.
const (
	Other       Purpose = iota // what none of the following says: small or short-lived
	Weights                    // parameters, their gradients, the optimiser's state
	Features                   // of the vertices, read once an epoch or less
	FirstGather                // the first layer's aggregation, kept over the epochs
	Published                  // rows that others gather, with the ghosts
	Activations                // what the forward pass keeps for the backward pass
	Gradients                  // of activations
	Edges                      // a value for each edge
)

var purposes = [...]string{"other", "weights", "features", "first aggregation", "published rows", "activations", "gradients", "edge values"}

// String is what people read in a memory plan: "published rows".
func (p Purpose) String() string {
	if int(p) < len(purposes) {
		return purposes[p]
	}
	return "unknown"
}

// PurposeAllocator is implemented by devices that may hold less in their memory than
// is allocated.
type PurposeAllocator interface {
	// AllocFor is Device.Alloc of a matrix for a purpose.
	AllocFor(p Purpose, rows, cols int) (*Mat, error)
}

// AllocFor allocates on d, and tells it what for if it wants to know.
func AllocFor(d Device, p Purpose, rows, cols int) (*Mat, error) {
	if a, ok := d.(PurposeAllocator); ok {
		return a.AllocFor(p, rows, cols)
	}
	return d.Alloc(rows, cols)
}
