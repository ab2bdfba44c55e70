// Package link carries items between the servers of a run: in order from each sender,
// exactly once, across connections that break.
//
// Each ordered pair of servers has one gRPC stream, opened by the sender. Items are
// numbered from 1 on, cut into messages, and kept by the sender until they are
// acknowledged, which a receiver does when somebody has taken them by Recv: so what is
// under way, at the sender, on the wire and at the receiver, is bounded by the sender's
// window. When a stream breaks the sender opens another, hears how far the receiver has
// come, and sends the rest again; the receiver drops what it has.
//
// The obvious design, a call per item, was not taken: it waits for the network once per
// item or gives up the order, and it has to remember the same numbers.
//
// A peer that stays away, takes nothing, or sends what does not fit ends the mesh with
// an rpc.PeerError that names it.
package link
