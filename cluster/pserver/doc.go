// Package pserver is parameter servers and what graph servers have of them.
//
// P shards have rows of the parameters each (Layout). A shard is an engine/params.Server
// of its rows behind a gate; a client is an engine/params.Replica of all rows, which sums
// the gradients of its own blocks as far as the fixed tree lets and sends the rest up. The
// update of a value depends on nothing but that value and its gradient, except for
// clipping: there the shards send the leader, graph server 0, the sums of squares of their
// rows, in float64, and it adds them up in the order of one process. So the bits depend
// neither on the number of shards nor on that of clients.
//
// # What is said
//
// Each client has one stream to each shard. hello names the client, its blocks and the run's
// settings, which must be the same at all; the leader adds what to start with, so a run goes
// on from a checkpoint on any number of servers. From then on:
//
//	client → shard                      shard → client
//	push   sums over own blocks         weights  a new version of its rows, to all, once
//	ack    has a version of all shards  ready    squares of an epoch's rows, to the leader
//	norm   of the leader                state    answers ask: weights and moments
//	ask    for a version's state        done     answers bye
//	bye    ends, maybe for a reason     fail     why the run has ended for all
//	                                    stop     the run should stop: this server has to go
//
// A shard makes an update when all gradients are in and all clients have acknowledged the
// version before, which they do when they have it of all shards. So shards are never more
// than one version apart, a shard never has more than one version to send to anybody, and
// the two versions that it keeps, with their moments, are enough for a snapshot at any
// time: a client that takes one does not acknowledge newer versions meanwhile.
//
// # What goes wrong
//
// Streams break. The client calls again; what was said and may be lost is said again; each
// (epoch, parameter, blocks) counts once. Pushes need no answer: the version that they went
// into is one. Who stays away too long, does not read, or says what does not fit, ends the
// run: all clients get an error with its role, rank and address. A shard that has been
// started anew has lost the run, and says so. One that is left of an earlier attempt, with
// nobody of its own any more, ends when it is called by a later one, which calls again.
//
// A shard writes no checkpoint of its own. The leader's (Client.Snapshot) has all rows and
// moments, is as small as the model, and can be resumed from on any number of shards.
package pserver
