// Package tuner decides how many Lambda workers a graph server wants.
//
// Intervals go round between two places: the graph server's cores, which run graph
// tasks, and the workers, which run tensor tasks. With too many workers tensor tasks
// come back faster than the cores can gather, and the queue of graph tasks grows; with
// too few it is drained, and cores stand still while tensor tasks wait. The number of
// intervals is fixed, so a queue that grows does not grow for ever: it ends as a queue
// that stands beside workers without work, and one that shrinks ends as none. The tuner
// therefore reads both, growth and what growth has led to.
//
// More workers do not always help: where the network is the narrowest place, each one
// slows the others down and the queue stays drained at any count. So each move is a
// trial. It stays if the rate of tensor tasks bears it out, and is taken back if not;
// what a trial has shown too few or too many is not tried again until the load changes.
// That makes the search end, and keeps it from oscillating.
//
// The package is pure: it has no clock, goroutine or I/O, and the same samples give the
// same decisions.
package tuner
