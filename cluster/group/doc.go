// Package group is engine.Group between processes: what the graph servers of a run give
// each other under a key, the wish to stop, and the news that one of them is lost.
//
// Rank 0 is the hub: the others give to it, and it gives all of them what all have given.
// A tree would need fewer messages at one server; with the few dozen servers of a run
// and some kilobytes per epoch, what counts is that one server knows who is missing.
package group
