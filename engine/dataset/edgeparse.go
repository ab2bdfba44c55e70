package dataset

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// edgeBlock is the edges of one block of text. Ids are numbers, small where all fit
// 32 bits, or names; intern numbers names and large ids.
type edgeBlock struct {
	small    []int32 // source, target, source, target, ...
	large    []int64 // the same where an id needs it; then small is empty
	interned bool    // small has numbers of an interner, not ids
	text     []byte  // that names are parts of
	names    []textSpan
	hashes   []uint32 // of names
	weight   []float32
	max      int64 // largest id, -1 for none
}

// textSpan is the n bytes from at on.
type textSpan struct{ at, n uint32 }

// name is the i-th one; it shares the block's memory.
func (e *edgeBlock) name(i int) string {
	s := e.names[i]
	return bytesAsString(e.text[s.at : s.at+s.n])
}

// addName appends a name that is not part of the block's text.
func (e *edgeBlock) addName(s string) {
	e.names = append(e.names, textSpan{uint32(len(e.text)), uint32(len(s))})
	e.text = append(e.text, s...)
}

// edgeParser parses lines of cols columns.
type edgeParser struct {
	sep      byte
	cols     int
	src, dst int // columns of the two ends
	weight   int // column of the weight, -1: none
	byName   bool
	noHash   bool // of names: intern will not be called
}

// plain says whether a line is nothing but source and target.
func (p edgeParser) plain() bool { return p.cols == 2 && p.src == 0 && p.dst == 1 && p.weight < 0 }

// parse reads a block of lines.
func (p edgeParser) parse(b []byte) (*edgeBlock, int, error) {
	if p.byName {
		e, line, err := p.parseNames(b)
		if err == nil && !p.noHash {
			e.hash()
		}
		return e, line, err
	}
	e := &edgeBlock{max: -1}
	e.small = make([]int32, 0, len(b)/6)
	line, plain := 0, p.plain()
	triple := p.cols == 3 && p.src == 0 && p.dst == 1 && p.weight == 2
	for ; len(b) > 0; line++ {
		var u, v int64
		n := 0
		if plain {
			u, v, n = fastPair(b, p.sep)
		} else if triple {
			var w float32
			if u, v, w, n = fastTriple(b, p.sep); n > 0 {
				e.weight = append(e.weight, w)
			}
		}
		if n == 0 {
			var text []byte
			text, b = nextLine(b)
			if err := p.slow(e, text, line); err != nil {
				return nil, line, err
			}
			continue
		}
		e.add(u, v)
		b = b[n:]
	}
	return e, line, nil
}

// fastPair reads "12,34\n" and returns the bytes it took, 0 for anything else.
func fastPair(b []byte, sep byte) (u, v int64, n int) {
	i := 0
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		u = u*10 + int64(b[i]-'0')
	}
	// 19 digits are at most 2^63 - 1, or negative here; 20 may be anything.
	if i == 0 || i > 19 || u < 0 || i >= len(b) || b[i] != sep {
		return 0, 0, 0
	}
	i++
	start := i
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		v = v*10 + int64(b[i]-'0')
	}
	if i == start || i-start > 19 || v < 0 {
		return 0, 0, 0
	}
	if i < len(b) && b[i] == '\r' {
		i++
	}
	if i < len(b) {
		if b[i] != '\n' {
			return 0, 0, 0
		}
		i++
	}
	return u, v, i
}

// tens are the powers of ten that float32 holds exactly.
var tens = [...]float32{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10}

// fastTriple reads "12,34,0.625\n" and returns the bytes it took, 0 for anything else.
// A weight of at most 24 bits over a power of ten that float32 holds is divided with one
// rounding, so that it is the number nearest to the text, as strconv's.
func fastTriple(b []byte, sep byte) (u, v int64, w float32, n int) {
	i := 0
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		u = u*10 + int64(b[i]-'0')
	}
	if i == 0 || i > 18 || i >= len(b) || b[i] != sep {
		return 0, 0, 0, 0
	}
	i++
	start := i
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		v = v*10 + int64(b[i]-'0')
	}
	if i == start || i-start > 18 || i >= len(b) || b[i] != sep {
		return 0, 0, 0, 0
	}
	i++
	start = i
	m, point := int64(0), -1
	for ; i < len(b) && i-start < 12; i++ {
		if b[i] == '.' && point < 0 {
			point = i
			continue
		}
		if b[i]-'0' >= 10 {
			break
		}
		m = m*10 + int64(b[i]-'0')
	}
	digits, scale := i-start, 0
	if point >= 0 {
		digits--
		scale = i - point - 1
	}
	if digits == 0 || m >= 1<<24 || scale >= len(tens) {
		return 0, 0, 0, 0
	}
	if i < len(b) && b[i] == '\r' {
		i++
	}
	if i < len(b) {
		if b[i] != '\n' {
			return 0, 0, 0, 0
		}
		i++
	}
	return u, v, float32(m) / tens[scale], i
}

// add appends an edge, changing to 64 bits at the first id that needs them.
func (e *edgeBlock) add(u, v int64) {
	top := max(u, v)
	e.max = max(e.max, top)
	if e.large == nil {
		if top <= math.MaxInt32 {
			e.small = append(e.small, int32(u), int32(v))
			return
		}
		e.large = make([]int64, len(e.small), cap(e.small))
		for i, x := range e.small {
			e.large[i] = int64(x)
		}
		e.small = nil
	}
	e.large = append(e.large, u, v)
}

// slow reads one line of any form, also a blank one or a comment.
func (p edgeParser) slow(e *edgeBlock, text []byte, line int) error {
	if isBlank(text) || isComment(text) {
		return nil
	}
	f, n := p.fields(text)
	if err := p.columns(n, line); err != nil {
		return err
	}
	u, err := parseID(f[0], line)
	if err != nil {
		return err
	}
	v, err := parseID(f[1], line)
	if err != nil {
		return err
	}
	e.add(u, v)
	return p.addWeight(e, f[2], line)
}

func (p edgeParser) columns(n, line int) error {
	if n != p.cols {
		return atLine(line, "%d columns, but the first line of data has %d; give source and target, and a weight in every line or in none", n, p.cols)
	}
	return nil
}

func (p edgeParser) addWeight(e *edgeBlock, s string, line int) error {
	if p.weight < 0 {
		return nil
	}
	w, err := strconv.ParseFloat(s, 32)
	if err != nil && (w == 0 || !math.IsInf(w, 0)) {
		return atLine(line, "weight %q is not a number", clip(s))
	}
	e.weight = append(e.weight, float32(w))
	return nil
}

// fields is a line's source, target and weight, sharing its memory, and how many
// columns it has.
func (p edgeParser) fields(text []byte) (f [3]string, n int) {
	s := unsafe.String(unsafe.SliceData(text), len(text))
	take := func(field string) {
		switch n {
		case p.src:
			f[0] = field
		case p.dst:
			f[1] = field
		case p.weight:
			f[2] = field
		}
		n++
	}
	if strings.IndexByte(s, '"') >= 0 {
		for _, field := range splitLine(s, p.sep) {
			take(field)
		}
		return f, n
	}
	if p.sep == ' ' {
		for field := range strings.FieldsSeq(s) {
			take(field)
		}
		return f, n
	}
	for {
		i := strings.IndexByte(s, p.sep)
		if i < 0 {
			take(strings.TrimSpace(s))
			return f, n
		}
		take(strings.TrimSpace(s[:i]))
		s = s[i+1:]
	}
}

// parseID reads a vertex number; "2746.0" is one, as programs with float columns write it.
func parseID(s string, line int) (int64, error) {
	digits := s
	if i := strings.IndexByte(s, '.'); i > 0 && strings.Trim(s[i+1:], "0") == "" {
		digits = s[:i]
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil && s == "":
		return 0, atLine(line, "a vertex is missing")
	case err != nil:
		return 0, atLine(line, "vertex %q is not a number, but those before it are; correct it, or say that ids are names (--names)", clip(s))
	case v < 0:
		return 0, atLine(line, "vertex %d is negative; vertices are numbered from 0, or say that ids are names (--names)", v)
	}
	return v, nil
}

// parseNames reads a block whose ids are names; intern numbers them.
func (p edgeParser) parseNames(b []byte) (*edgeBlock, int, error) {
	e := &edgeBlock{max: -1}
	e.text = append(make([]byte, 0, len(b)), b...)
	e.names = make([]textSpan, 0, len(b)/8)
	line := 0
	plain := p.plain() && bytes.IndexByte(b, '"') < 0 && (p.sep != ' ' || bytes.IndexByte(b, '\t') < 0)
	for at := 0; at < len(b); line++ {
		start := at
		text := b[at:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[:i]
			at++
		}
		at += len(text)
		if plain {
			if u, v := fastNames(text, p.sep); v > 0 {
				e.names = append(e.names, textSpan{uint32(start), uint32(u)}, textSpan{uint32(start + u + 1), uint32(v)})
				continue
			}
		}
		text = bytes.TrimSuffix(text, []byte("\r"))
		if isBlank(text) || isComment(text) {
			continue
		}
		f, n := p.fields(text)
		if err := p.columns(n, line); err != nil {
			return nil, line, err
		}
		if f[0] == "" || f[1] == "" {
			return nil, line, atLine(line, "a vertex is missing")
		}
		e.addName(f[0])
		e.addName(f[1])
		if err := p.addWeight(e, f[2], line); err != nil {
			return nil, line, err
		}
	}
	return e, line, nil
}

// fastNames is the lengths of both names of "ada,bob", a line without quotes, where it
// is that simple: no blanks around names, comments or further columns. Elsewhere v is 0.
func fastNames(s []byte, sep byte) (u, v int) {
	u = bytes.IndexByte(s, sep)
	if u <= 0 || u+1 >= len(s) {
		return 0, 0
	}
	t := s[u+1:]
	if t[len(t)-1] == '\r' {
		t = t[:len(t)-1]
	}
	if len(t) == 0 || !bare(s[0]) || !bare(s[u-1]) || !bare(t[0]) || !bare(t[len(t)-1]) || bytes.IndexByte(t, sep) >= 0 {
		return 0, 0
	}
	return u, len(t)
}

// bare says whether a name's first or last byte needs no further look: printable
// ASCII other than the marks of comments and quotes.
func bare(c byte) bool { return c > ' ' && c < 0x7f && c != '#' && c != '%' && c != '"' }

// intern replaces the block's names by their numbers.
func (e *edgeBlock) intern(n *interner) {
	e.small, e.interned = make([]int32, len(e.names)), true
	n.numberAll(e, e.small)
	e.text, e.names, e.hashes = nil, nil, nil
}

// internIDs replaces the block's ids by their numbers.
func (e *edgeBlock) internIDs(n *idInterner) {
	if e.interned {
		return
	}
	if e.large == nil {
		e.large = make([]int64, len(e.small))
		for i, v := range e.small {
			e.large[i] = int64(v)
		}
	}
	e.small, e.interned = make([]int32, len(e.large)), true
	n.numberAll(e.large, e.small)
	e.large = nil
}

// hash prepares the block's names for intern.
func (e *edgeBlock) hash() {
	e.hashes = make([]uint32, len(e.names))
	for i, s := range e.names {
		e.hashes[i] = hashName(e.text[s.at : s.at+s.n])
	}
}

// bytesAsString is b as a string; b must not change afterwards.
func bytesAsString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
