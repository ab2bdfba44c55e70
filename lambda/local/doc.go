// Package local is a Lambda service inside one process: the Invoke API
// (2015-03-31, response streaming 2021-11-15) towards an unmodified AWS SDK, the
// Runtime API (2018-06-01) towards real worker processes, with Lambda's limits,
// error types, cold starts, freezing, throttling, billing, and faults on demand.
//
// A call takes this way:
//
//	SDK ── api.go ── admit (throttle.go) ── pool.go ── environment.go ── worker process
//	        errors.go   concurrency, rate    warm or     runtime.go: next, response, error
//	                                         cold        process*.go, cgroup: limits, freeze, kill
//
// An environment is one process group with one loopback listener. It runs one
// call at a time; between calls it is stopped (SIGSTOP), as Lambda freezes its
// own. It ends when idle for long, when a call timed out, when its process ended,
// or with the service. A call that finds no free environment starts one, within
// the limits of concurrency and of scaling up; it never waits for a busy one.
//
// All waiting goes through a Clock, so tests with a clock of their own need not
// wait for a timeout of minutes. Durations that are billed come from that clock.
//
// What differs from AWS: a signature must be there and have the right shape, but
// is not verified; there is one version ($LATEST) and every qualifier names it;
// where this machine has no delegated cgroup v2, CPU and memory are held by
// GOMAXPROCS, GOMEMLIMIT and RLIMIT_DATA (the ColdStart event says which); a
// worker's own connections do not pass through the service, so
// BandwidthBytesPerSec slows payloads and replies only.
package local
