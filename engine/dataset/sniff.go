package dataset

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// layout is how the columns of a text table are separated and named.
type layout struct {
	sep    byte     // ',', '\t', ';', or ' ' for any run of blanks
	header []string // column names, lower case; nil: there is none
	cols   int
	skip   int // lines before the first data line
}

// sniffBytes is how much of a table is looked at to guess its layout.
const sniffBytes = 64 << 10

// sniff looks at the start of r and returns the layout, the first data line's
// fields, and a reader that starts at that line.
func sniff(name string, r io.Reader) (l layout, first []string, rest io.Reader, err error) {
	return sniffAs(name, r, "", false)
}

// sniffAs is sniff where the separator is known, unless sep is "", and where header
// says that there is one.
func sniffAs(name string, r io.Reader, sep string, header bool) (l layout, first []string, rest io.Reader, err error) {
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return l, nil, nil, fmt.Errorf("read %s: line 1: %w", name, cause(err))
	}
	head = bytes.TrimPrefix(head[:n], []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(head, 0) >= 0 {
		return l, nil, nil, fmt.Errorf("read %s: byte %d is 0: this is no text file in UTF-8", name, bytes.IndexByte(head, 0))
	}
	b := head
	for len(b) > 0 {
		line, next := nextLine(b)
		if isBlank(line) || isComment(line) {
			l.skip++
			b = next
			continue
		}
		if l.sep = separator(line); sep != "" {
			l.sep = sep[0]
		}
		first = splitLine(string(line), l.sep)
		l.cols = len(first)
		if l.header == nil && (header || isHeader(first, next, l.sep)) {
			for _, f := range first {
				l.header = append(l.header, strings.ToLower(strings.TrimSpace(f)))
			}
			first = nil
			l.skip++
			b = next
			for len(b) > 0 { // the first line of data tells more than the header
				line, next := nextLine(b)
				if !isBlank(line) && !isComment(line) {
					first = splitLine(string(line), l.sep)
					break
				}
				l.skip++
				b = next
			}
		}
		break
	}
	if first == nil && n == sniffBytes {
		return l, nil, nil, fmt.Errorf("read %s: line %d: no data in the first %d bytes; remove the comments above it", name, l.skip, n)
	}
	return l, first, io.MultiReader(bytes.NewReader(b), r), nil
}

// separator guesses from a line.
func separator(line []byte) byte {
	for _, sep := range []byte{'\t', ',', ';'} {
		if bytes.IndexByte(line, sep) >= 0 {
			return sep
		}
	}
	return ' '
}

// headerWords are words of column names: a line in which every field has one is a
// header even above names.
var headerWords = []string{"source", "target", "src", "dst", "from", "to", "id", "ids", "id1", "id2", "node", "node1", "node2", "nodeid",
	"u", "v", "head", "tail", "weight", "w", "value", "label", "class", "category", "type", "y", "vertex", "name", "index", "idx",
	"dest", "destination", "start", "end", "paper", "user", "item"}

// isColumnName says whether a field has one of headerWords between blanks, _ and -.
func isColumnName(field string) bool {
	words := strings.FieldsFunc(strings.ToLower(field), func(r rune) bool { return r == '_' || r == '-' || r == ' ' || r == '.' })
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(headerWords, w) })
}

// isHeader says whether fields name columns: none is a number, and either the next
// line has one, or all sound like column names.
func isHeader(fields []string, next []byte, sep byte) bool {
	known := true
	for _, f := range fields {
		if isNumber(f) {
			return false
		}
		known = known && isColumnName(f)
	}
	if known {
		return true
	}
	for len(next) > 0 {
		line, rest := nextLine(next)
		if isBlank(line) || isComment(line) {
			next = rest
			continue
		}
		return slices.ContainsFunc(splitLine(string(line), sep), isNumber)
	}
	return false
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil
}

// splitLine cuts a line into fields; a field in double quotes may hold separators.
func splitLine(line string, sep byte) []string {
	if sep == ' ' {
		return strings.Fields(line)
	}
	var out []string
	for {
		if strings.HasPrefix(line, `"`) {
			field, rest := quoted(line)
			out = append(out, field)
			i := strings.IndexByte(rest, sep)
			if i < 0 {
				return out
			}
			line = rest[i+1:]
			continue
		}
		field, rest, more := strings.Cut(line, string(sep))
		out = append(out, strings.TrimSpace(field))
		if !more {
			return out
		}
		line = rest
	}
}

// quoted reads a field in double quotes, in which two stand for one.
func quoted(s string) (field, rest string) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		return b.String(), s[i+1:]
	}
	return b.String(), ""
}

// column is the place of the first column that has one of names, or -1.
func (l layout) column(names ...string) int {
	for _, n := range names {
		if i := slices.Index(l.header, strings.ToLower(n)); i >= 0 {
			return i
		}
	}
	return -1
}
