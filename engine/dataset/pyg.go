package dataset

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nlpodyssey/gopickle/types"
)

// pygFile is the .pt file of a source: itself, or a data set's processed/data.pt.
func pygFile(in *input) string {
	if in.dir {
		return in.firstOf("processed/data.pt", "processed/geometric_data_processed.pt", "data.pt")
	}
	if ext := in.ext(); ext == ".pt" || ext == ".pth" {
		return "."
	}
	return ""
}

func detectPyG(in *input) bool { return pygFile(in) != "" }

// readPyG reads a graph of PyTorch Geometric from a file of torch.save: a Data, the
// (data, slices) that InMemoryDataset keeps in processed/data.pt, or a dictionary with
// the same names. x is the features; edge_index the edges, messages flow from its first
// row to its second; edge_weight, or an edge_attr of one column, the weights; y the
// classes, one per vertex or one column for each; train_mask, val_mask and test_mask
// the splits, one column for each.
func readPyG(ctx context.Context, in *input) (*Raw, error) {
	file := pygFile(in)
	var b *blob
	var err error
	switch {
	case in.dir && file == "":
		return nil, fmt.Errorf("open data set %s: no processed/data.pt in this folder", in.src)
	case in.dir:
		b, err = in.open(file)
	default:
		b, err = in.openSelf()
	}
	if err != nil {
		return nil, err
	}
	defer b.Close()
	_, value, err := loadTorch(b)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := pyg{name: b.name}
	if err := p.find(value, 0); err != nil {
		return nil, err
	}
	p.raw = &Raw{Name: in.base(), Format: "pyg", Files: []string{path.Base(b.name)}}
	for _, step := range []func() error{p.count, p.edges, p.weights, p.features, p.labels, p.masks} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p.raw, nil
}

// pyg is the attributes of a graph on their way into raw.
type pyg struct {
	name   string
	fields map[string]any
	raw    *Raw
}

// find looks for the attributes in what was decoded.
func (p *pyg) find(v any, depth int) error {
	if depth > 8 {
		return fmt.Errorf("read %s: its containers are nested too deep", p.name)
	}
	switch v := v.(type) {
	case *types.Tuple: // (data, slices, class)
		if v.Len() == 0 {
			break
		}
		if v.Len() > 1 {
			if err := p.oneGraph(v.Get(1)); err != nil {
				return err
			}
		}
		return p.find(v.Get(0), depth+1)
	case *types.List:
		if v.Len() != 1 {
			return fmt.Errorf("read %s: a list of %d; one graph is read: save the one to train on", p.name, v.Len())
		}
		return p.find(v.Get(0), depth+1)
	case *torchObject:
		if strings.Contains(strings.ToLower(v.class), "hetero") {
			return fmt.Errorf("read %s: it is a %s; graphs of one kind of vertex and edge are read: save data.to_homogeneous()", p.name, path.Base(v.class))
		}
		if v.state != nil {
			return p.find(v.state, depth+1)
		}
		return p.find(&v.items, depth+1)
	case *types.Dict:
		return p.findIn(v, depth)
	case *types.OrderedDict:
		d := types.NewDict()
		for k, e := range v.Map {
			d.Set(k, e.Value)
		}
		return p.findIn(d, depth)
	}
	return p.nothing(fmt.Sprintf("%T", v))
}

func (p *pyg) nothing(what string) error {
	return fmt.Errorf("read %s: no graph is found in it, but %s; it must be a torch_geometric Data, a (data, slices) tuple or a dictionary with x, edge_index and y", p.name, what)
}

// findIn takes the attributes of a dictionary, or looks into the storage inside it.
func (p *pyg) findIn(d *types.Dict, depth int) error {
	var names []string
	fields := map[string]any{}
	for _, e := range *d {
		key, ok := e.Key.(string)
		if !ok {
			continue
		}
		names = append(names, key)
		if e.Value != nil {
			fields[key] = e.Value
		}
	}
	for _, key := range []string{"edge_index", "adj_t", "x"} {
		if fields[key] != nil {
			p.fields = fields
			return nil
		}
	}
	for _, key := range []string{"_store", "_mapping", "_data", "data"} {
		if inner := fields[key]; inner != nil {
			return p.find(inner, depth+1)
		}
	}
	slices.Sort(names)
	if len(names) > 12 {
		names = append(names[:12], "…")
	}
	return p.nothing("a dictionary of " + clipTo(strings.Join(names, ", "), 200))
}

// clipTo is clip to n bytes.
func clipTo(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// oneGraph checks the slices of a data set: offsets of each graph in every attribute.
func (p *pyg) oneGraph(v any) error {
	d, ok := v.(*types.Dict)
	if !ok {
		return nil
	}
	for _, e := range *d {
		if t, ok := e.Value.(*torchTensor); ok && len(t.shape) == 1 && t.shape[0] > 2 {
			return fmt.Errorf("read %s: it holds %d graphs; one is read: save dataset[k] for the one to train on", p.name, t.shape[0]-1)
		}
	}
	return nil
}

// tensor is an attribute's values; nil where there is none.
func (p *pyg) tensor(key string) (*numArray, error) {
	switch v := p.fields[key].(type) {
	case nil:
		return nil, nil
	case *torchTensor:
		return v.array(p.name + ": " + key)
	case *torchObject:
		return nil, fmt.Errorf("read %s: %s is a %s; save it as a dense tensor, and edges as edge_index", p.name, key, v.class)
	default:
		return nil, fmt.Errorf("read %s: %s is %T, not a tensor", p.name, key, v)
	}
}

// count decides the number of vertices: that of rows of x or y, or num_nodes, or what
// the edges name.
func (p *pyg) count() error {
	for _, key := range []string{"x", "y"} {
		if t, ok := p.fields[key].(*torchTensor); ok && len(t.shape) > 0 {
			n, err := vertexCount(p.name+": "+key, int64(t.shape[0]))
			p.raw.N = n
			return err
		}
	}
	for _, key := range []string{"num_nodes", "_num_nodes", "__num_nodes__"} {
		switch v := p.fields[key].(type) {
		case int:
			n, err := vertexCount(p.name+": "+key, int64(v))
			p.raw.N = n
			return err
		case *types.List:
			if v.Len() != 1 {
				continue
			}
			if n, ok := v.Get(0).(int); ok {
				n, err := vertexCount(p.name+": "+key, int64(n))
				p.raw.N = n
				return err
			}
		}
	}
	a, err := p.tensor("edge_index")
	if a == nil || err != nil {
		return err
	}
	v, err := a.int32s("vertex", 0, maxVertices)
	if err != nil {
		return err
	}
	for _, u := range v {
		p.raw.N = max(p.raw.N, int(u)+1)
	}
	if p.raw.N > 1<<20+64*len(v) {
		return fmt.Errorf("read %s: vertex %d is the largest of %d: nearly all are isolated; number the vertices without gaps", a.name, p.raw.N-1, len(v))
	}
	return nil
}

func (p *pyg) edges() error {
	a, err := p.tensor("edge_index")
	if err != nil {
		return err
	}
	if a == nil {
		if p.fields["adj_t"] != nil || p.fields["adj"] != nil {
			return fmt.Errorf("read %s: edges are an adj_t, a class of torch_sparse; save the graph with edge_index instead", p.name)
		}
		return nil
	}
	return p.raw.setEdgeIndex(a)
}

func (p *pyg) weights() error {
	raw := p.raw
	for _, key := range []string{"edge_weight", "edge_attr"} {
		a, err := p.tensor(key)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		rows, cols, err := a.dims()
		if err != nil {
			return err
		}
		switch {
		case rows != len(raw.Src):
			return fmt.Errorf("read %s: %d weights for %d edges", a.name, rows, len(raw.Src))
		case cols != 1:
			raw.noteUnread("edge-features-unread", fmt.Sprintf("%s of %d columns", a.name, cols), "edges have features, which no model here reads: every edge weighs 1",
				"save one column of them as edge_weight, if it is a weight")
			continue
		}
		w, err := a.floats()
		if err != nil {
			return err
		}
		if !allOnes(w) {
			raw.Weight = w
		}
		return nil
	}
	return nil
}

func (p *pyg) features() error {
	a, err := p.tensor("x")
	if a == nil || err != nil {
		return err
	}
	p.raw.Dense, err = a.matrix(p.raw.N)
	return err
}

func (p *pyg) labels() error {
	a, err := p.tensor("y")
	if a == nil || err != nil {
		return err
	}
	return p.raw.setLabels(a)
}

// masks reads the three masks. One of a single column serves every split.
func (p *pyg) masks() error {
	raw := p.raw
	var on [3][]bool
	var cols [3]int
	splits := 0
	for role, key := range []string{"train_mask", "val_mask", "test_mask"} {
		a, err := p.tensor(key)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		rows, c, err := a.dims()
		if err != nil {
			return err
		}
		if rows != raw.N {
			return rowsMismatch(a.name, "mask values", rows, raw.N)
		}
		if on[role], err = a.bools(); err != nil {
			return err
		}
		cols[role] = c
		if c > 1 && splits > 1 && c != splits {
			return fmt.Errorf("read %s: %d splits, but another mask has %d", a.name, c, splits)
		}
		splits = max(splits, c)
	}
	for s := range splits {
		split := Split{Name: strconv.Itoa(s)}
		if splits == 1 {
			split.Name = "public"
		}
		for role := range on {
			if cols[role] > 0 {
				*split.role(role) = column(on[role], cols[role], min(s, cols[role]-1))
			}
		}
		raw.Splits = append(raw.Splits, split)
	}
	return nil
}

// column is the rows in which column c of a matrix of cols columns is set.
func column(on []bool, cols, c int) []int32 {
	var ids []int32
	for i := c; i < len(on); i += cols {
		if on[i] {
			ids = append(ids, int32(i/cols))
		}
	}
	return ids
}
