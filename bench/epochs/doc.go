// Command epochs trains the same models on the same graphs with the engine and with other
// libraries, in turn (A B A B ...), and says how much faster and leaner the engine is, and
// how near to what the machine can do.
//
//	go run ./bench/epochs [-works gcn-cora,...] [-rounds N] [-out FILE] [-peers FOLDER]
//
// Every ratio is given twice: of the engine as it is, and with the kept first aggregation
// and the pruning of rows switched off, where it does the work that the others do.
// Times are wall times: on a machine that does other things they say little, and the
// result says how busy others have kept it.
//
// The roofline of an epoch is the time that its gathers and products would take at the
// rates that probes measure on the same cores in the same run: rows gathered at the rate at
// which rows of that width come from a table that fits the caches, since tiles make every
// table such a one, and multiplications at the peak of the multiply-add units. Everything else, epilogues,
// loss, updates and waiting, counts as nothing.
package main
