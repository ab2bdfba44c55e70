// Package engine says what training means. It knows no AWS, gRPC, CUDA or cgo.
//
// The words are the paper's (Dorylus, OSDI'21): see task for the kinds of work,
// sched for when a task may run, model for what an epoch consists of, pipeline
// for the goroutines that do it, params for weights, versions and stash. The
// interfaces in this package are what Lambda, GPU and cluster plug into.
package engine
