// Command lambda measures what Lambda mode costs and hides, with workers of the local
// service: the bytes of an epoch by the naive protocol and by ours, how much of the
// network's latency passes behind other work, whether the bits are those of the CPU mode,
// where the autotuner settles, and what `compare` says of two data sets.
//
//	go run ./bench/lambda [-engine FILE] [-data GRAPH] [-reference FOLDER] [-epochs N] [-out FILE]
//
// It runs the engine's binary and reads what that leaves behind: summaries, events and
// traces. Workers share the machine's processors with the graph server, so times say what
// overlaps, not how fast a service with processors of its own would be.
package main
