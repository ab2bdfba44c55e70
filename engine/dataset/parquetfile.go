package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	pqformat "github.com/parquet-go/parquet-go/format"
)

// pqFile is an open Parquet file.
type pqFile struct {
	blob *blob
	f    *parquet.File
	rows int
	cols []pqColumn
}

// pqColumn is one of its columns: a value per row, or a list of them.
type pqColumn struct {
	name string // lower case
	leaf int
	list bool
	kind parquet.Kind
}

// openParquet reads b's schema and takes it over. Sizes are checked against the
// file's before any page is decoded.
func openParquet(b *blob) (p *pqFile, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read %s: it is damaged: %v", b.name, r)
		}
		if err != nil {
			b.Close()
		}
	}()
	r, size, err := b.readerAt()
	if err != nil {
		return nil, err
	}
	if err := checkFooter(r, size); err != nil {
		return nil, fmt.Errorf("read %s: %w; it is truncated or no Parquet file, copy it again", b.name, err)
	}
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; it is truncated or no Parquet file, copy it again", b.name, err)
	}
	p = &pqFile{blob: b, f: f}
	if p.rows, err = vertexCount(b.name, f.NumRows()); err != nil && f.NumRows() >= 0 && f.NumRows() < math.MaxInt64/64 {
		p.rows, err = int(f.NumRows()), nil // rows may be edges
	}
	if err != nil {
		return nil, err
	}
	for _, c := range f.Root().Columns() {
		leaf := c
		for !leaf.Leaf() && len(leaf.Columns()) == 1 {
			leaf = leaf.Columns()[0]
		}
		if leaf.Leaf() && leaf.MaxRepetitionLevel() <= 1 {
			p.cols = append(p.cols, pqColumn{strings.ToLower(c.Name()), leaf.Index(), leaf.MaxRepetitionLevel() == 1, leaf.Type().Kind()})
		}
	}
	for _, g := range f.Metadata().RowGroups {
		for i := range g.Columns {
			if err := checkChunk(r, size, &g.Columns[i].MetaData); err != nil {
				return nil, fmt.Errorf("read %s: column %s: %w; the file is damaged", b.name, strings.Join(g.Columns[i].MetaData.PathInSchema, "."), err)
			}
		}
	}
	return p, nil
}

// checkFooter checks the marks and the footer's length, and that its lists are no
// longer than itself.
func checkFooter(r io.ReaderAt, size int64) error {
	var tail [8]byte
	if size < 12 {
		return fmt.Errorf("%d bytes are too few", size)
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if string(tail[4:]) != "PAR1" || n > size-12 || n > 1<<28 {
		return fmt.Errorf("its last bytes are no Parquet footer")
	}
	return nil
}

// checkChunk walks the page headers of a column chunk.
func checkChunk(r io.ReaderAt, size int64, c *pqformat.ColumnMetaData) error {
	at := c.DataPageOffset
	if c.DictionaryPageOffset > 0 && c.DictionaryPageOffset < at {
		at = c.DictionaryPageOffset
	}
	if at < 4 || c.TotalCompressedSize < 0 || c.TotalCompressedSize > size-at || c.NumValues < 0 {
		return fmt.Errorf("%d bytes at byte %d of a file of %d", c.TotalCompressedSize, at, size)
	}
	end, values := at+c.TotalCompressedSize, int64(0)
	for at < end && values < c.NumValues {
		h, n, err := pageHeader(r, at, end)
		if err != nil {
			return fmt.Errorf("page at byte %d: %w", at, err)
		}
		at += n
		packed := int64(h.CompressedPageSize)
		if packed < 0 || packed > end-at || h.UncompressedPageSize < 0 || int64(h.UncompressedPageSize) > maxExpanded(packed) {
			return fmt.Errorf("page at byte %d: %d bytes that expand to %d, of %d left", at, packed, h.UncompressedPageSize, end-at)
		}
		n = 0
		switch {
		case h.DataPageHeader.Valid:
			n = int64(h.DataPageHeader.V.NumValues)
		case h.DataPageHeaderV2.Valid:
			n = int64(h.DataPageHeaderV2.V.NumValues)
		case h.DictionaryPageHeader.Valid:
			if d := int64(h.DictionaryPageHeader.V.NumValues); d < 0 || d > 8*int64(h.UncompressedPageSize) {
				return fmt.Errorf("page at byte %d: a dictionary of %d values in %d bytes", at, d, h.UncompressedPageSize)
			}
		}
		if n < 0 || n > 1<<26 && n > 1<<10*packed {
			return fmt.Errorf("page at byte %d: %d values in %d bytes", at, n, packed)
		}
		values += n
		at += packed
	}
	return nil
}

// pageHeader decodes the header at byte at, which ends before end, and returns its length.
func pageHeader(r io.ReaderAt, at, end int64) (h pqformat.PageHeader, n int64, err error) {
	for _, limit := range []int64{4 << 10, 1 << 20} { // statistics may hold long texts
		buf := make([]byte, min(limit, end-at))
		if _, err := r.ReadAt(buf, at); err != nil && err != io.EOF {
			return h, 0, cause(err)
		}
		br := (&thrift.CompactProtocol{}).NewReaderFromBytes(buf)
		h = pqformat.PageHeader{}
		if err = thrift.NewDecoder(br).Decode(&h); err == nil {
			return h, int64(br.BytesRead()), nil
		}
	}
	return h, 0, err
}

// Close releases the file.
func (p *pqFile) Close() error { return p.blob.Close() }

// column is the column that has the first of names, nil where none has.
func (p *pqFile) column(names ...string) *pqColumn {
	for _, n := range names {
		for i := range p.cols {
			if p.cols[i].name == strings.ToLower(n) {
				return &p.cols[i]
			}
		}
	}
	return nil
}

// names is the columns' names, for messages.
func (p *pqFile) names() string {
	var all []string
	for _, c := range p.cols {
		all = append(all, c.name)
	}
	return clipTo(strings.Join(all, ", "), 200)
}

// numeric says whether the column's values are numbers or bools.
func (c *pqColumn) numeric() bool {
	return slices.Contains([]parquet.Kind{parquet.Boolean, parquet.Int32, parquet.Int64, parquet.Float, parquet.Double}, c.kind)
}

// each calls do for every value of a column with its row; a missing value is null.
func (p *pqFile) each(c *pqColumn, do func(row int, v parquet.Value) error) (err error) {
	row := -1
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read %s: column %s: row %d: it is damaged: %v", p.blob.name, c.name, max(row, 0), r)
		}
	}()
	buf := make([]parquet.Value, 1024)
	for _, g := range p.f.RowGroups() {
		pages := g.ColumnChunks()[c.leaf].Pages()
		for {
			page, err := pages.ReadPage()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				pages.Close()
				return fmt.Errorf("read %s: column %s: after row %d: %w; the file is damaged", p.blob.name, c.name, row, err)
			}
			for values := page.Values(); ; {
				n, err := values.ReadValues(buf)
				for _, v := range buf[:n] {
					if v.RepetitionLevel() == 0 {
						row++
					}
					if row < 0 || row >= p.rows {
						pages.Close()
						return fmt.Errorf("read %s: column %s: more than the %d rows of the file", p.blob.name, c.name, p.rows)
					}
					if err := do(row, v); err != nil {
						pages.Close()
						return fmt.Errorf("read %s: column %s: row %d: %w", p.blob.name, c.name, row, err)
					}
				}
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					pages.Close()
					return fmt.Errorf("read %s: column %s: after row %d: %w; the file is damaged", p.blob.name, c.name, row, err)
				}
				if n == 0 {
					break
				}
			}
			parquet.Release(page)
		}
		pages.Close()
	}
	if row+1 != p.rows {
		return fmt.Errorf("read %s: column %s: %d rows, but the file has %d", p.blob.name, c.name, row+1, p.rows)
	}
	return nil
}

// pqFloat is a value as a number; a missing one is NaN.
func pqFloat(v parquet.Value) (float64, error) {
	if v.IsNull() {
		return math.NaN(), nil
	}
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return 1, nil
		}
		return 0, nil
	case parquet.Int32:
		return float64(v.Int32()), nil
	case parquet.Int64:
		return float64(v.Int64()), nil
	case parquet.Float:
		return float64(v.Float()), nil
	case parquet.Double:
		return v.Double(), nil
	}
	return 0, fmt.Errorf("%q is not a number", clip(v.String()))
}

// pqInt is a value as a whole number.
func pqInt(v parquet.Value) (int64, error) {
	switch {
	case v.IsNull():
		return 0, fmt.Errorf("a value is missing")
	case v.Kind() == parquet.Int32:
		return int64(v.Int32()), nil
	case v.Kind() == parquet.Int64:
		return v.Int64(), nil
	}
	f, err := pqFloat(v)
	if err != nil {
		return 0, err
	}
	if i := floatToInt(f); i != notInteger {
		return i, nil
	}
	return 0, fmt.Errorf("%v is not a whole number", f)
}

// pqText is a value as text, "" where it is missing.
func pqText(v parquet.Value) string {
	if v.IsNull() {
		return ""
	}
	return v.String()
}
