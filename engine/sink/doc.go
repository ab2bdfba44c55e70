// Package sink turns the events of a run into what people see: events.jsonl,
// the summary, TensorBoard files, a trace for Perfetto, and progress.
//
// A sink never stops a run. One that cannot write any more (a full disk, say)
// reports it once, through the function it was given, and is silent from then
// on; Close returns the same error. Sinks are called from one goroutine at a
// time, as engine.Listener says.
package sink
