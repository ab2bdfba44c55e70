package dataset

import (
	"hash/maphash"
	"strings"
)

// interner numbers names in order of appearance. The zero value is ready to use.
//
// Its table holds, for each name, 32 bits of its hash and its number, so that a table
// of n names is 8 bytes times at most 4 n and grows without hashing anything again.
// A name costs about three cache misses: its slot, its header and its letters;
// numberAll looks up a batch at a time, so that those of a batch overlap.
type interner struct {
	table []uint64 // hash<<32 | number+1, at hash modulo the length or after it; 0: free
	names []string
	chunk []byte // where the letters of new names go

	touched byte // keeps the reads that only fetch from being removed
}

// internSeed only decides where names lie in the table, never how they are numbered.
var internSeed = maphash.MakeSeed()

func hashName(s string) uint32 { return uint32(maphash.String(internSeed, s)) }

// internBatch is how many look-ups overlap.
const internBatch = 32

// number is name's, a new one if it has none.
func (n *interner) number(name string) int32 {
	n.reserve(1)
	return n.put(hashName(name), name)
}

// lookup is name's number, if it has one.
func (n *interner) lookup(name string) (int32, bool) {
	if len(n.table) == 0 {
		return 0, false
	}
	h := hashName(name)
	mask := uint32(len(n.table) - 1)
	for slot := h & mask; n.table[slot] != 0; slot = (slot + 1) & mask {
		if e := n.table[slot]; uint32(e>>32) == h && n.names[uint32(e)-1] == name {
			return int32(uint32(e) - 1), true
		}
	}
	return 0, false
}

// numberAll numbers names, whose hashes are given, into out.
func (n *interner) numberAll(names []string, hashes []uint32, out []int32) {
	var entry [internBatch]uint64
	var known [internBatch]string
	for lo := 0; lo < len(names); lo += internBatch {
		n.reserve(internBatch)
		part, hash := names[lo:min(lo+internBatch, len(names))], hashes[lo:]
		mask := uint32(len(n.table) - 1)
		for i := range part {
			slot := hash[i] & mask
			e := n.table[slot]
			for e != 0 && uint32(e>>32) != hash[i] {
				slot = (slot + 1) & mask
				e = n.table[slot]
			}
			entry[i] = e
		}
		for i := range part {
			known[i] = ""
			if e := entry[i]; e != 0 {
				known[i] = n.names[uint32(e)-1]
			}
		}
		for i := range part { // fetches the letters, all at once
			if known[i] != "" {
				n.touched ^= known[i][0]
			}
		}
		for i, name := range part {
			if name != "" && known[i] == name {
				out[lo+i] = int32(uint32(entry[i]) - 1)
			} else {
				out[lo+i] = n.put(hash[i], name)
			}
		}
	}
}

// put finds name or adds it; reserve has made room.
func (n *interner) put(h uint32, name string) int32 {
	mask := uint32(len(n.table) - 1)
	slot := h & mask
	for ; n.table[slot] != 0; slot = (slot + 1) & mask {
		if e := n.table[slot]; uint32(e>>32) == h && n.names[uint32(e)-1] == name {
			return int32(uint32(e) - 1)
		}
	}
	k := len(n.names)
	n.names = append(n.names, n.keep(name))
	n.table[slot] = uint64(h)<<32 | uint64(k+1)
	return int32(k)
}

// keep copies a name to a chunk of letters, so that it does not hold on to a block of
// text, and small names need no allocation of their own.
func (n *interner) keep(name string) string {
	const chunk = 64 << 10
	if len(name) > chunk/4 {
		return strings.Clone(name)
	}
	if cap(n.chunk)-len(n.chunk) < len(name) {
		n.chunk = make([]byte, 0, chunk)
	}
	start := len(n.chunk)
	n.chunk = append(n.chunk, name...)
	return bytesAsString(n.chunk[start:])
}

// reserve makes the table large enough for more names, half full at most.
func (n *interner) reserve(more int) {
	size := max(len(n.table), 1024)
	for 2*(len(n.names)+more) > size {
		size *= 2
	}
	if size == len(n.table) {
		return
	}
	old := n.table
	n.table = make([]uint64, size)
	mask := uint32(size - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		slot := uint32(e>>32) & mask
		for n.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		n.table[slot] = e
	}
}
