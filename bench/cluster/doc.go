// Command cluster measures runs of several graph servers and parameter servers against
// runs of one process: whether their bits are the same, how good asynchronous ones are
// while servers are being delayed, what ghost rows take on the wire beside the least that
// they can take, and where the time, the bytes and the memory of 1, 2 and 4 servers go.
//
//	go run ./bench/cluster [-engine FILE] [-data GRAPH] [-reference FOLDER] [-parts LIST] [-out FILE]
//
// It runs the engine's binary (launch local) and reads what that leaves behind: summaries
// and events. All servers share the processors of one machine, so times say what waits
// for what, not how fast as many machines would be.
package main
