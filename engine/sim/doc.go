// Package sim plays a run on many graph servers in virtual time: what `plan` tells
// before anything is hired.
//
// Every server has a sched.Machine, the one that a real run has, and a pool of cores. A
// task that the machine issues occupies a core for as long as a model of its cost says;
// rows, the ends of intervals, gradients and weights travel over a modelled network; what
// arrives is told to the machines, which issue the next tasks. Which task waits for what
// is therefore not modelled but decided by the code that decides it in a run; durations
// are what is modelled.
//
// There is no clock, no goroutine and no chance in it: the same Config gives the same
// Result, to the nanosecond.
package sim
