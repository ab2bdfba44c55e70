// Package workload finds out what a run's tasks amount to, before it runs: which rows,
// edges and products each interval of each partition has, and which rows it sends.
//
// Nothing of that is estimated from a formula per model. The partitions' plans are made by
// engine/graph as a run makes them, and the program's own ops are called, on matrices that
// have a shape and no memory, with a stream that counts instead of computing.
package workload
