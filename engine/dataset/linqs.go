package dataset

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"dorylus/kernels"
)

var (
	linqsContent = []string{".content"}
	linqsCites   = []string{".cites"}
)

// withExt is the only file of the source's folder that has one of exts, "" where
// there is none or several.
func (in *input) withExt(exts []string) (name string) {
	for _, f := range in.list() {
		for _, x := range exts {
			if extOf(f) == x {
				if name != "" {
					return ""
				}
				name = f
			}
		}
	}
	return name
}

func detectLINQS(in *input) bool {
	return in.withExt(linqsContent) != "" && in.withExt(linqsCites) != ""
}

// readLINQS reads NAME.content, one line per vertex: its id, its features and its
// class, and NAME.cites, one line "cited citing" per link. The vertices are those of
// NAME.content in its order. As in all work on these sets a citation is taken to be
// undirected. CiteSeer's links name papers that have no line; they are left out and
// counted.
func readLINQS(ctx context.Context, in *input) (*Raw, error) {
	content, cites := in.withExt(linqsContent), in.withExt(linqsCites)
	if content == "" || cites == "" {
		return nil, fmt.Errorf("open data set %s: it needs one file NAME.content and one NAME.cites", in.src)
	}
	raw := &Raw{Name: in.base(), Format: "linqs", Files: []string{path.Base(content), path.Base(cites)}, Undirected: true}
	l := linqs{raw: raw, place: map[string]int32{}, sparse: &kernels.CSR{RowPtr: []int64{0}}}
	if err := l.readContent(ctx, in, content); err != nil {
		return nil, err
	}
	return raw, l.readCites(ctx, in, cites)
}

type linqs struct {
	raw    *Raw
	place  map[string]int32
	sparse *kernels.CSR
}

// linqsBlock is the vertices of one block of text.
type linqsBlock struct {
	ids, labels []string
	rows        kernels.CSR
}

func (l *linqs) readContent(ctx context.Context, in *input, name string) error {
	b, err := in.open(name)
	if err != nil {
		return err
	}
	defer b.Close()
	text, err := b.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	t := labelTable{name: b.name}
	var labels []string
	cols := -1
	err = parseLines(ctx, b.name, text, 0, parseContent, func(p *linqsBlock) error {
		for i, id := range p.ids {
			if _, ok := l.place[id]; ok {
				return fmt.Errorf("read %s: record %d: vertex %q has a line already; keep one", b.name, len(l.raw.IDs), clip(id))
			}
			l.place[id] = int32(len(l.raw.IDs))
			l.raw.IDs = append(l.raw.IDs, id)
			l.sparse.RowPtr = append(l.sparse.RowPtr, int64(len(l.sparse.Col))+p.rows.RowPtr[i+1])
		}
		labels = append(labels, p.labels...)
		l.sparse.Col = append(l.sparse.Col, p.rows.Col...)
		l.sparse.Val = append(l.sparse.Val, p.rows.Val...)
		if cols >= 0 && len(p.ids) > 0 && p.rows.Cols != cols {
			return fmt.Errorf("read %s: record %d: %d features, but the first line has %d", b.name, len(l.raw.IDs)-len(p.ids), p.rows.Cols, cols)
		}
		if len(p.ids) > 0 {
			cols = p.rows.Cols
		}
		return nil
	})
	if err != nil {
		return err
	}
	if l.raw.N, err = vertexCount(b.name, int64(len(l.raw.IDs))); err != nil {
		return err
	}
	if l.raw.N == 0 {
		return fmt.Errorf("read %s: it has no vertex", b.name)
	}
	l.sparse.Cols = cols
	if allOnes(l.sparse.Val) {
		l.sparse.Val = nil
	}
	l.raw.Sparse = l.sparse
	if err := t.set(labels); err != nil {
		return err
	}
	l.raw.Labels, l.raw.Classes = t.labels, t.classes
	return nil
}

// parseContent reads lines "id feature ... class" and keeps the features that are not zero.
func parseContent(b []byte) (*linqsBlock, int, error) {
	p := &linqsBlock{rows: kernels.CSR{RowPtr: []int64{0}}}
	all := string(b)
	line := 0
	for ; len(all) > 0; line++ {
		text, rest, _ := strings.Cut(all, "\n")
		all = rest
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if len(f) < 2 {
			return nil, line, atLine(line, "%d columns; a line has an id, features and a class", len(f))
		}
		cols := len(f) - 2
		if len(p.ids) > 0 && cols != p.rows.Cols {
			return nil, line, atLine(line, "%d features, but the line before has %d", cols, p.rows.Cols)
		}
		p.rows.Cols = cols
		for c, s := range f[1 : len(f)-1] {
			if s == "0" {
				continue
			}
			x, err := strconv.ParseFloat(s, 32)
			if err != nil {
				return nil, line, atLine(line, "column %d: %q is not a number", c+2, clip(s))
			}
			if x != 0 {
				p.rows.Col, p.rows.Val = append(p.rows.Col, int32(c)), append(p.rows.Val, float32(x))
			}
		}
		p.rows.RowPtr = append(p.rows.RowPtr, int64(len(p.rows.Col)))
		p.ids = append(p.ids, strings.Clone(f[0]))
		p.labels = append(p.labels, strings.Clone(f[len(f)-1]))
	}
	return p, line, nil
}

func (l *linqs) readCites(ctx context.Context, in *input, name string) error {
	b, err := in.open(name)
	if err != nil {
		return err
	}
	defer b.Close()
	text, err := b.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	p := edgeParser{sep: ' ', cols: 2, src: 0, dst: 1, weight: -1, byName: true, noHash: true}
	record := int64(0)
	var stray tally
	err = parseLines(ctx, b.name, text, 0, p.parse, func(e *edgeBlock) error {
		for i := 0; i < len(e.names); i += 2 {
			cited, okU := l.place[e.name(i)]
			citing, okV := l.place[e.name(i+1)]
			if !okU || !okV {
				stray.hit(func() string {
					return fmt.Sprintf("record %d (%q, %q) of %s", record, clip(e.name(i)), clip(e.name(i+1)), b.name)
				})
			} else {
				l.raw.Src, l.raw.Dst = append(l.raw.Src, cited), append(l.raw.Dst, citing)
			}
			record++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if stray.count > 0 {
		l.raw.Findings = append(l.raw.Findings, stray.finding("links-left-out", Warning,
			"a link names a paper that has neither features nor a class: it was left out, since it leads to no vertex", "give these papers a line in "+l.raw.Files[0]+" if they matter"))
	}
	return nil
}
