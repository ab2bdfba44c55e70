// Package ghost carries the rows that one partition has published and another gathers:
// engine.Exchanger over links (cluster/link), and the same within a process.
//
// Rows travel as frames of the tensor codec, in messages of about a mebibyte. With fp32,
// the default, every bit arrives; bf16 and fp16 halve the bytes and round each value
// once, on the wire: sums are made in fp32 at both ends. Whether frames are compressed
// is probed for each pair of servers, pass and step.
package ghost
