package export

import (
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// parquetRows is how many rows a row group has.
const parquetRows = 1 << 16

// schema is id (string, or int64 where vertices have no names), class (string) and
// class_id (int32) or classes (list of strings), and scores and embedding (lists of float).
func (t *Table) schema() *parquet.Schema {
	g := parquet.Group{}
	if t.IDs != nil {
		g["id"] = parquet.String()
	} else {
		g["id"] = parquet.Leaf(parquet.Int64Type)
	}
	switch {
	case t.Class != nil:
		g["class"] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		g["class_id"] = parquet.Leaf(parquet.Int32Type)
	case t.Sets != nil:
		g["classes"] = parquet.List(parquet.String())
	}
	if t.Scores != nil {
		g["scores"] = parquet.List(parquet.Leaf(parquet.FloatType))
	}
	if t.Embedding != nil {
		g["embedding"] = parquet.List(parquet.Leaf(parquet.FloatType))
	}
	return parquet.NewSchema("vertices", g)
}

// writeParquet writes a row per vertex, compressed with zstd.
func writeParquet(out io.Writer, t *Table) error {
	schema := t.schema()
	w := parquet.NewGenericWriter[any](out, schema, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("dorylus", "1", ""))
	b := rowBuilder{columns: map[string]int{}}
	for i, path := range schema.Columns() {
		b.columns[path[0]] = i
		b.width = max(b.width, i+1)
	}
	rows := make([]parquet.Row, 0, 1024)
	for v := range t.Rows {
		rows = append(rows, b.row(t, v))
		if len(rows) == cap(rows) || v == t.Rows-1 {
			if _, err := w.WriteRows(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
		if (v+1)%parquetRows == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// rowBuilder lays the values of a vertex out by column.
type rowBuilder struct {
	columns map[string]int
	width   int
}

func (b *rowBuilder) row(t *Table, v int) parquet.Row {
	var row parquet.Row
	one := func(name string, x parquet.Value) {
		row = append(row, x.Level(0, 0, b.columns[name]))
	}
	if t.IDs != nil {
		one("id", parquet.ByteArrayValue([]byte(t.IDs[v])))
	} else {
		one("id", parquet.Int64Value(int64(v)))
	}
	switch {
	case t.Class != nil:
		one("class", parquet.ByteArrayValue([]byte(t.className(int(t.Class[v])))))
		one("class_id", parquet.Int32Value(t.Class[v]))
	case t.Sets != nil:
		names := t.setNames(v)
		row = b.list(row, "classes", len(names), func(i int) parquet.Value { return parquet.ByteArrayValue([]byte(names[i])) })
	}
	if t.Scores != nil {
		x := t.Scores.Row(v)
		row = b.list(row, "scores", len(x), func(i int) parquet.Value { return parquet.FloatValue(x[i]) })
	}
	if t.Embedding != nil {
		x := t.Embedding.Row(v)
		row = b.list(row, "embedding", len(x), func(i int) parquet.Value { return parquet.FloatValue(x[i]) })
	}
	slices.SortStableFunc(row, func(x, y parquet.Value) int { return x.Column() - y.Column() })
	return row
}

// list appends a list of n values: the first of a row repeats nothing, and an empty one
// is defined to no depth.
func (b *rowBuilder) list(row parquet.Row, name string, n int, at func(i int) parquet.Value) parquet.Row {
	if n == 0 {
		return append(row, parquet.NullValue().Level(0, 0, b.columns[name]))
	}
	for i := range n {
		row = append(row, at(i).Level(min(i, 1), 1, b.columns[name]))
	}
	return row
}
