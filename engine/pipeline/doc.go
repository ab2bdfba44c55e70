// Package pipeline runs a model's program over a graph. It is the only owner of
// goroutines and queues: sched decides which task may run, model says what it
// computes, params keeps the weights, and everything that happens becomes an
// event.
//
// A session is one run in one process: it binds the program twice, as a training
// pass over the rows that the loss can see and as an evaluation pass over all
// rows, and hands both to a trainer.
package pipeline
