// Package spill lets a device compute on more than its memory holds. A matrix that is
// spilled lies in pinned host memory; its Addr is a number at or above Base that no
// kernel ever sees. A Stream of this package takes ops on any mixture of resident and
// spilled matrices, and turns each into ops of the device on what it stages in an
// arena, a fixed part of the device's memory:
//
//	row-wise ops    run on pieces of rows, one behind the other
//	sums over rows  add up the sums of pieces, in order
//	gathers         whose sources are spilled run on tiles of columns (attention: on
//	                groups of heads), with all rows of a tile; where only their output
//	                is spilled, on pieces of rows
//	rows by number  (GatherRows and its like) are picked by the host
//
// Pieces go through two or three slots of the arena, on three lines of the device that
// run beside each other: copies in, computing, copies out. A piece is uploaded while
// the one before it is computed and the one before that is downloaded. Each value
// crosses once in each direction per op. What an op needs whole, such as a bias or the
// second factor of a product, is staged once per op.
//
// # Layout
//
// A spilled matrix is stored in tiles of columns (Config.Tile), each with all rows, so
// that both a tile and a piece of its rows are contiguous: transfers are large and not
// strided. Addr counts as if it were stored by rows, so that views (Mat.Sub,
// Mat.Columns) work as anywhere. A matrix of one row, or not wider than a tile, lies as
// it would on the device; only of such a one may a view have another stride.
//
// # Results
//
// An op that is not reduced over rows gives what the device gives for the piece: the
// same values but, where the device chooses its order of sums by the width or the
// number of rows of a call (gathers, products), for the last bits. Sums over rows are
// added piece by piece, which also changes last bits. The pieces depend on shapes and
// on the arena's size only, never on timing: two runs give the same bits.
package spill
