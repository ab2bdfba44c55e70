// Command kernels measures the CPU kernels against what the machine can do, in
// one run: the plain loop that a compiler vectorises, the gather without and with
// tiles, and beside each the bandwidth that a probe reaches with the same rows.
//
//	go run ./bench/kernels [-vertices N] [-degree D] [-widths 16,41,...] [-quick] [-out FILE]
//
// Times are CPU times of the workers' threads, the mean over the workers, best of
// several rounds in which the variants take turns: other load on the machine does
// not count, though it does disturb the caches. Ratios within a run are what to
// look at. The goals at the end are ratios, too.
package main
