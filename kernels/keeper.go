package kernels

// Keeper is an optional interface of a Device whose memory the host cannot address,
// for lists that many ops are given: rows to gather, labels, ids of dropout. Slices
// that are not kept are copied to the device for each op.
type Keeper interface {
	// Keep holds a copy of v, which must not change, in the device's memory until as
	// many Drops; a Stream that is given v or a part of it reads the copy. A list of
	// no values is not held. It is an error where the memory does not suffice, and
	// where a list is kept that begins where v does and has another length. Where v is all
	// of the columns of the targets of a BlockSigmoidBCE, their row offsets are kept from
	// then on as well, and must not change either.
	Keep(v []int32) error
	// Drop gives the copy up, once no op that was given v is still queued. A list that
	// is not kept is a bug of the caller and panics with a *ShapeError.
	Drop(v []int32)
}
