package dataset

import (
	"encoding/binary"
	"hash/maphash"
)

// interner numbers names in order of appearance. The zero value is ready to use.
//
// A name is a record in chunks of memory, in order of appearance: its number, its
// length and its letters, to a multiple of 8 bytes. The table has, for each name, 24
// bits of its hash and where its record is, 8 bytes times 2 to 4 a name. So a look-up
// costs about two cache misses, its slot and its record; numberAll looks up a batch at a
// time, so that those of a batch overlap. Nothing in it is a pointer for each name, which
// the garbage collector would have to follow.
type interner struct {
	table  []uint64 // tag<<internShift | place/8+1, at hash modulo the length or after it; 0: free
	chunks [][]byte // a record's place is the number of its chunk << internChunk | where it begins
	count  int
}

const (
	internShift  = 40 // a tag above, a place below
	internChunk  = 20 // log2 of the bytes of a chunk; a longer record has a chunk of its own
	internHeader = 8
	internBatch  = 32 // how many look-ups overlap
)

// internSeed only decides where names lie in the table, never how they are numbered.
var internSeed = maphash.MakeSeed()

func hashName(s []byte) uint32 { return uint32(maphash.Bytes(internSeed, s)) }

// internTag is the part of a hash that a slot keeps, in its place.
func internTag(h uint32) uint64 { return uint64(h>>8) << internShift }

// record is the memory from a place on.
func (n *interner) record(slot uint64) []byte {
	place := (slot&(1<<internShift-1) - 1) << 3
	return n.chunks[place>>internChunk][place&(1<<internChunk-1):]
}

// nameOf is the name of a record.
func nameOf(r []byte) []byte {
	return r[internHeader : internHeader+binary.LittleEndian.Uint32(r[4:])]
}

// number is name's, a new one if it has none.
func (n *interner) number(name string) int32 {
	n.reserve(1)
	b := []byte(name)
	return n.put(hashName(b), b)
}

// lookup is name's number, if it has one.
func (n *interner) lookup(name string) (int32, bool) {
	if len(n.table) == 0 {
		return 0, false
	}
	b := []byte(name)
	h := hashName(b)
	mask := uint32(len(n.table) - 1)
	for slot := h & mask; n.table[slot] != 0; slot = (slot + 1) & mask {
		if k, ok := n.is(n.table[slot], h, b); ok {
			return k, true
		}
	}
	return 0, false
}

// is says whether a slot is name's, and its number.
func (n *interner) is(slot uint64, h uint32, name []byte) (int32, bool) {
	if slot>>internShift<<internShift != internTag(h) {
		return 0, false
	}
	r := n.record(slot)
	return int32(binary.LittleEndian.Uint32(r)), string(nameOf(r)) == string(name)
}

// numberAll numbers the names of a block, whose hashes are given, into out.
func (n *interner) numberAll(e *edgeBlock, out []int32) {
	var entry [internBatch]uint64
	var number [internBatch]uint32
	for lo := 0; lo < len(e.names); lo += internBatch {
		n.reserve(internBatch)
		part, hash := e.names[lo:min(lo+internBatch, len(e.names))], e.hashes[lo:]
		mask := uint32(len(n.table) - 1)
		// No branch may wait for memory here, or the look-ups would wait for each other.
		for i := range part {
			entry[i] = n.table[hash[i]&mask]
		}
		for i, x := range entry[:len(part)] {
			slot, tag := hash[i]&mask, internTag(hash[i])
			for x != 0 && x>>internShift<<internShift != tag {
				slot = (slot + 1) & mask
				x = n.table[slot]
			}
			entry[i] = x
		}
		for i := range part { // fetches the records, all at once
			if entry[i] != 0 {
				number[i] = binary.LittleEndian.Uint32(n.record(entry[i]))
			}
		}
		for i, s := range part {
			name := e.text[s.at : s.at+s.n]
			if entry[i] != 0 && string(nameOf(n.record(entry[i]))) == string(name) {
				out[lo+i] = int32(number[i])
			} else {
				out[lo+i] = n.put(hash[i], name)
			}
		}
	}
}

// put finds name or adds it; reserve has made room.
func (n *interner) put(h uint32, name []byte) int32 {
	mask := uint32(len(n.table) - 1)
	slot := h & mask
	for ; n.table[slot] != 0; slot = (slot + 1) & mask {
		if k, ok := n.is(n.table[slot], h, name); ok {
			return k
		}
	}
	k := n.count
	n.count++
	n.table[slot] = internTag(h) | n.keep(uint32(k), name)
	return int32(k)
}

// keep writes a record and returns what a slot says of its place.
func (n *interner) keep(number uint32, name []byte) uint64 {
	size := (internHeader + len(name) + 7) &^ 7
	last := len(n.chunks) - 1
	if last < 0 || cap(n.chunks[last])-len(n.chunks[last]) < size {
		n.chunks = append(n.chunks, make([]byte, 0, max(size, 1<<internChunk)))
		last++
	}
	c := n.chunks[last]
	at := len(c)
	c = c[:at+size]
	binary.LittleEndian.PutUint32(c[at:], number)
	binary.LittleEndian.PutUint32(c[at+4:], uint32(len(name)))
	copy(c[at+internHeader:], name)
	n.chunks[last] = c
	return (uint64(last)<<internChunk|uint64(at))>>3 + 1
}

// reserve makes the table large enough for more names, half full at most.
func (n *interner) reserve(more int) {
	size := max(len(n.table), 1024)
	for 2*(n.count+more) > size {
		size *= 2
	}
	if size == len(n.table) {
		return
	}
	n.table = make([]uint64, size)
	mask := uint32(size - 1)
	n.each(func(r []byte, place uint64) {
		h := hashName(nameOf(r))
		slot := h & mask
		for n.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		n.table[slot] = internTag(h) | place
	})
}

// each calls f for every record, in order, with what a slot says of its place.
func (n *interner) each(f func(r []byte, place uint64)) {
	for k, c := range n.chunks {
		for at := 0; at < len(c); {
			r := c[at:]
			f(r, (uint64(k)<<internChunk|uint64(at))>>3+1)
			at += (internHeader + len(nameOf(r)) + 7) &^ 7
		}
	}
}

// list is the names by number. They share the interner's memory.
func (n *interner) list() []string {
	names := make([]string, 0, n.count)
	n.each(func(r []byte, _ uint64) { names = append(names, bytesAsString(nameOf(r))) })
	return names
}
