//go:build cgo && amd64 && linux

package cpu

import (
	"fmt"
	"math"
	"sort"
	"sync"
	"unsafe"

	"dorylus/kernels"
)

const (
	panelCols = 64 // columns of a panel in a tiled gather
	// A tiled gather costs a pass over the outputs per tile. It pays when rows
	// have enough edges in a tile, and when a span reads each source row of a
	// tile several times while it is in the cache.
	minTileDegree = 16
	minReuse      = 4
	minPackReuse  = 8 // where the tile is copied first
	// DefaultTileBytes is the cache that one tile of sources fills by default:
	// the share of a last-level cache that one core of a server can count on.
	DefaultTileBytes = 6 << 20
)

// A graph is the caller's CSR and, for large ones, a table of where each row's
// edges cross from one tile of sources to the next.
//
// The gather of a graph whose sources exceed the caches runs at the speed of
// random reads from memory. In tiles it runs at the speed of the cache: for one
// panel of columns after another, all rows of the span take the edges from the
// first tile of sources, then from the second, and so on. Edges are sorted by
// source, so a row's tiles are consecutive runs of its edges and the sum's order
// does not change; the running sum rests in the output between tiles. The bits
// are therefore those of the untiled gather.
//
// Building a second CSR per tile, as others do, would double the memory; the
// table costs 4 bytes per row and tile.
type graph struct {
	*kernels.CSR
	dev *device

	once     sync.Once
	tile     []int32 // tile[(t-1)*rows+v]: edges of row v before tile t
	tiles    int     // 1: not tiled
	tileErr  error
	memory   []byte
	tileRows int
}

// Cols is the number of source rows.
func (g *graph) Cols() int { return g.CSR.Cols }

// Load checks g and keeps its slices.
func (d *device) Load(c *kernels.CSR) (kernels.Graph, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: load: %w", d.Name(), err)
	}
	g := &graph{CSR: c, dev: d, tiles: 1}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.graphs[g] = struct{}{}
	d.mu.mem.Graphs++
	return g, nil
}

// Unload forgets g and frees its table; nil does nothing.
func (d *device) Unload(x kernels.Graph) {
	if x == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	g, ok := x.(*graph)
	if _, held := d.mu.graphs[g]; !ok || !held {
		panic(&kernels.ShapeError{Op: "Unload", Msg: fmt.Sprintf("a graph of %d rows that %s does not hold", x.Rows(), d.Name())})
	}
	delete(d.mu.graphs, g)
	d.mu.mem.Graphs--
	d.mu.mem.TileBytes -= int64(len(g.memory))
	if err := d.arena.release(g.memory); err != nil {
		panic(fmt.Sprintf("%s: unload a graph of %d rows: %v", d.Name(), g.Rows(), err))
	}
	g.memory, g.tile = nil, nil
}

// A plan is how one gather goes about its columns and sources.
type plan struct {
	tile                []int32 // nil: untiled
	tiles, group, panel int
	pack                int // values of scratch for packed sources; 0: not packed
}

// plan chooses tiles for a gather from x over rows.
func (g *graph) plan(x *kernels.Mat, rows kernels.Span) (plan, error) {
	cols := x.Cols
	flat := plan{tiles: 1, group: 1, panel: max(cols, 1)}
	limit := g.dev.tileBytes
	if limit == 0 || cols == 0 {
		return flat, nil
	}
	panels := (cols + panelCols - 1) / panelCols
	width := kernels.PadCols(max((cols+panels-1)/panels, 2))
	packed := x.Stride > width // a panel of these rows would leave gaps
	reuse := minReuse
	if packed {
		reuse = minPackReuse
	}
	edges := g.RowPtr[rows.Hi] - g.RowPtr[rows.Lo]
	switch {
	case g.CSR.Cols*width*4 < 2*limit: // the sources (nearly) fit as they are
		return flat, nil
	case edges < int64(minTileDegree)*int64(rows.Len()), edges < int64(reuse)*int64(g.CSR.Cols):
		return flat, nil
	}
	g.once.Do(g.cutTiles)
	if g.tileErr != nil || g.tiles == 1 {
		return flat, g.tileErr
	}
	// Narrow panels take several tiles at once.
	group := max(1, panelCols/width)
	if group >= g.tiles {
		return flat, nil
	}
	p := plan{tile: g.tile, tiles: g.tiles, group: group, panel: width}
	if packed {
		p.pack = group * g.tileRows * width
	}
	return p, nil
}

// cutTiles makes the table.
func (g *graph) cutTiles() {
	n := g.CSR.Rows()
	g.tileRows = max(1, g.dev.tileBytes/(panelCols*4))
	tiles := (g.CSR.Cols + g.tileRows - 1) / g.tileRows
	if tiles < 2 || n == 0 {
		return
	}
	for v := range n {
		if g.RowPtr[v+1]-g.RowPtr[v] > math.MaxInt32 {
			return // offsets within a row would not fit
		}
	}
	b, err := g.dev.arena.alloc(4 * (tiles - 1) * n)
	if err != nil {
		g.tileErr = fmt.Errorf("make the table of %d tiles for a graph of %d rows: %w", tiles, n, err)
		return
	}
	tile := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
	for v := range n {
		col := g.Col[g.RowPtr[v]:g.RowPtr[v+1]]
		at := 0
		for t := 1; t < tiles; t++ {
			first := int32(t * g.tileRows)
			at += sort.Search(len(col)-at, func(i int) bool { return col[at+i] >= first })
			tile[(t-1)*n+v] = int32(at)
		}
	}
	g.memory, g.tile, g.tiles = b, tile, tiles
	g.dev.mu.Lock()
	g.dev.mu.mem.TileBytes += int64(len(b))
	g.dev.mu.Unlock()
}
