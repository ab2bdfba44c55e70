package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// sagePrefix is PREFIX of the source's PREFIX-G.json, and whether there is one.
func sagePrefix(in *input) (string, bool) {
	for _, f := range in.list() {
		for _, end := range []string{"-G.json", "-G.json.gz", "-G.json.zst"} {
			if p, ok := strings.CutSuffix(f, end); ok {
				return p, true
			}
		}
	}
	return "", false
}

func detectGraphSAGE(in *input) bool {
	_, ok := sagePrefix(in)
	return ok
}

// readGraphSAGE reads the layout of GraphSAGE: PREFIX-G.json, networkx's node-link
// JSON, whose vertices say by val and test which they are in (neither: train);
// PREFIX-id_map.json, the row of each id; PREFIX-class_map.json, the class of each id, or
// a list of zeros and ones; PREFIX-feats.npy, one row of features per vertex.
func readGraphSAGE(ctx context.Context, in *input) (*Raw, error) {
	prefix, ok := sagePrefix(in)
	if !ok {
		return nil, fmt.Errorf("open data set %s: no PREFIX-G.json in this folder", in.src)
	}
	g := sage{raw: &Raw{Name: prefix, Format: "graphsage", Undirected: true}, row: map[string]int32{}}
	for _, part := range []struct {
		name string
		read func(context.Context, *blob) error
		must bool
	}{
		{"-id_map.json", g.readIDs, false}, {"-G.json", g.readGraph, true}, {"-class_map.json", g.readClasses, false}, {"-feats.npy", g.readFeatures, false},
	} {
		name := in.firstOf(prefix+part.name, prefix+part.name+".gz", prefix+part.name+".zst")
		if name == "" && !part.must {
			continue
		}
		b, err := in.open(name)
		if err != nil {
			return nil, err
		}
		g.raw.Files = append(g.raw.Files, name)
		err = part.read(ctx, b)
		b.Close()
		if err != nil {
			return nil, err
		}
	}
	return g.raw, nil
}

// sage is such a data set on its way into raw.
type sage struct {
	raw    *Raw
	row    map[string]int32 // of each id, by id_map
	refs   interner         // ids that links use as names
	ends   []int64          // of links: a place among the vertices, or -1 - the place in refs
	weight []float32
	place  []int32 // row of the vertices in the file's order
	roles  []byte  // by row: 0 train, 1 val, 2 test
}

// sageVertex is one of nodes.
type sageVertex struct {
	ID   json.RawMessage `json:"id"`
	Val  bool            `json:"val"`
	Test bool            `json:"test"`
}

// sageLink is one of links.
type sageLink struct {
	Source json.RawMessage `json:"source"`
	Target json.RawMessage `json:"target"`
	Weight *float32        `json:"weight"`
}

// idText is an id in JSON, "a" or 7, as text.
func idText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(bytes.TrimSpace(raw))
}

// jsonObject calls each for every key of an object; each must read the value.
func jsonObject(ctx context.Context, b *blob, each func(d *json.Decoder, key string) error) error {
	text, err := b.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	d := json.NewDecoder(text)
	at := func(err error) error {
		return fmt.Errorf("read %s: byte %d: %w", b.name, d.InputOffset(), cause(err))
	}
	if t, err := d.Token(); err != nil {
		return at(err)
	} else if t != json.Delim('{') {
		return at(fmt.Errorf("it starts with %v, not with {", t))
	}
	for i := 0; d.More(); i++ {
		key, err := d.Token()
		if err != nil {
			return at(err)
		}
		if err := each(d, key.(string)); err != nil {
			return at(err)
		}
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if _, err := d.Token(); err != nil {
		return at(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return at(fmt.Errorf("more text after the object"))
	}
	return nil
}

// jsonList calls each for every element of a list; each must read it.
func jsonList(d *json.Decoder, each func() error) error {
	if t, err := d.Token(); err != nil {
		return err
	} else if t != json.Delim('[') {
		return fmt.Errorf("%v where a list must start", t)
	}
	for d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func (g *sage) readIDs(ctx context.Context, b *blob) error {
	return jsonObject(ctx, b, func(d *json.Decoder, key string) error {
		var v int64
		if err := d.Decode(&v); err != nil {
			return fmt.Errorf("id %q: %w", clip(key), err)
		}
		if v < 0 || v >= maxVertices {
			return fmt.Errorf("id %q: row %d is outside [0,%d)", clip(key), v, maxVertices)
		}
		g.row[key] = int32(v)
		return nil
	})
}

func (g *sage) readGraph(ctx context.Context, b *blob) error {
	var vertices []sageVertex
	err := jsonObject(ctx, b, func(d *json.Decoder, key string) error {
		switch key {
		case "directed":
			var directed bool
			err := d.Decode(&directed)
			g.raw.Undirected = !directed
			return err
		case "nodes":
			return jsonList(d, func() error {
				var v sageVertex
				if err := d.Decode(&v); err != nil {
					return fmt.Errorf("vertex %d: %w", len(vertices), err)
				}
				if v.ID == nil {
					return fmt.Errorf("vertex %d has no id", len(vertices))
				}
				vertices = append(vertices, v)
				return ctx.Err()
			})
		case "links", "edges":
			return jsonList(d, func() error {
				if err := g.link(d); err != nil {
					return err
				}
				return ctx.Err()
			})
		}
		var skip json.RawMessage
		return d.Decode(&skip)
	})
	if err != nil {
		return err
	}
	if err := g.number(b.name, vertices); err != nil {
		return err
	}
	return g.resolve(b.name, vertices)
}

// link reads a link.
func (g *sage) link(d *json.Decoder) error {
	var l sageLink
	i := len(g.ends) / 2
	if err := d.Decode(&l); err != nil {
		return fmt.Errorf("link %d: %w", i, err)
	}
	for _, raw := range []json.RawMessage{l.Source, l.Target} {
		if raw == nil {
			return fmt.Errorf("link %d has no source or no target", i)
		}
		if v, err := strconv.ParseInt(string(raw), 10, 64); err == nil && v >= 0 {
			g.ends = append(g.ends, v)
			continue
		}
		g.ends = append(g.ends, -1-int64(g.refs.number(idText(raw))))
	}
	if l.Weight != nil && g.weight == nil {
		g.weight = slices.Repeat([]float32{1}, i)
	}
	if g.weight != nil {
		w := float32(1)
		if l.Weight != nil {
			w = *l.Weight
		}
		g.weight = append(g.weight, w)
	}
	return nil
}

// number gives every vertex its row: that of id_map, or its place in the file.
func (g *sage) number(name string, vertices []sageVertex) error {
	n, err := vertexCount(name, int64(len(vertices)))
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("read %s: it has no nodes", name)
	}
	mapped := len(g.row) > 0
	if mapped && len(g.row) != n {
		return fmt.Errorf("read %s: %d vertices, but the id_map has %d; both must be of the same graph", name, n, len(g.row))
	}
	raw := g.raw
	raw.N, raw.IDs = n, make([]string, n)
	g.place, g.roles = make([]int32, n), make([]byte, n)
	taken := make([]bool, n)
	for i, v := range vertices {
		id := idText(v.ID)
		row, ok := g.row[id]
		if !mapped {
			if ok {
				return fmt.Errorf("read %s: vertex %d: id %q is that of vertex %d; ids must differ", name, i, clip(id), row)
			}
			row = int32(i)
			g.row[id] = row
		} else if !ok {
			return fmt.Errorf("read %s: vertex %d: id %q is not in the id_map", name, i, clip(id))
		}
		if int(row) >= n || taken[row] {
			return fmt.Errorf("read %s: vertex %d: id %q has row %d, which is not a row of its own in [0,%d)", name, i, clip(id), row, n)
		}
		taken[row] = true
		g.place[i], raw.IDs[row] = row, id
		switch {
		case v.Test:
			g.roles[row] = 2
		case v.Val:
			g.roles[row] = 1
		}
	}
	raw.dropPlainIDs()
	s := Split{Name: "file"}
	for row, role := range g.roles {
		ids := s.role(int(role))
		*ids = append(*ids, int32(row))
	}
	if len(s.Val)+len(s.Test) > 0 {
		raw.Splits = []Split{s}
	}
	return nil
}

// resolve turns the ends of links into rows. Numbers are places in the list of
// vertices, as networkx 1 wrote them; where one is beyond it, all are ids.
func (g *sage) resolve(name string, vertices []sageVertex) error {
	raw := g.raw
	byID := false
	for _, e := range g.ends {
		byID = byID || e >= int64(len(vertices))
	}
	raw.Src, raw.Dst = make([]int32, len(g.ends)/2), make([]int32, len(g.ends)/2)
	refs := g.refs.list()
	for k, e := range g.ends {
		row, ok, id := int32(0), true, ""
		switch {
		case e < 0:
			id = refs[-1-e]
			row, ok = g.row[id]
		case byID:
			id = strconv.FormatInt(e, 10)
			row, ok = g.row[id]
		default:
			row = g.place[e]
		}
		if !ok {
			return fmt.Errorf("read %s: link %d: vertex %q is not among its nodes", name, k/2, clip(id))
		}
		if k%2 == 0 {
			raw.Src[k/2] = row
		} else {
			raw.Dst[k/2] = row
		}
	}
	if !allOnes(g.weight) {
		raw.Weight = g.weight
	}
	g.ends = nil
	return nil
}

// readClasses reads the class of each id, or its list of zeros and ones.
func (g *sage) readClasses(ctx context.Context, b *blob) error {
	raw := g.raw
	var order []int32
	var sets *classSets
	t := labelTable{name: b.name}
	var texts []string
	seen := make([]bool, raw.N)
	err := jsonObject(ctx, b, func(d *json.Decoder, key string) error {
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		row, ok := g.row[key]
		if !ok {
			return fmt.Errorf("vertex %q is not in the graph", clip(key))
		}
		if seen[row] {
			return fmt.Errorf("vertex %q has a class already", clip(key))
		}
		seen[row] = true
		order = append(order, row)
		if value[0] != '[' {
			if sets != nil {
				return fmt.Errorf("vertex %q has %s, but those before it have lists", clip(key), clip(string(value)))
			}
			texts = append(texts, idText(value))
			return nil
		}
		var list []float32
		if err := json.Unmarshal(value, &list); err != nil {
			return fmt.Errorf("vertex %q: %w", clip(key), err)
		}
		if sets == nil {
			if len(texts) > 0 {
				return fmt.Errorf("vertex %q has a list, but those before it have one class each", clip(key))
			}
			var err error
			if sets, err = newClassSets(b.name, len(list)); err != nil {
				return err
			}
		}
		if len(list) != sets.sets.Cols {
			return fmt.Errorf("vertex %q has %d classes, but those before it have %d", clip(key), len(list), sets.sets.Cols)
		}
		return sets.add(list)
	})
	if err != nil {
		return err
	}
	if sets != nil {
		sets.place(order, raw.N)
		sets.store(raw)
		return nil
	}
	if err := t.set(texts); err != nil {
		return err
	}
	raw.Classes, raw.Labels = t.classes, slices.Repeat([]int32{-1}, raw.N)
	for i, row := range order {
		raw.Labels[row] = t.labels[i]
	}
	return nil
}

func (g *sage) readFeatures(_ context.Context, b *blob) error {
	a, err := openNPY(b)
	if err != nil {
		return err
	}
	g.raw.Dense, err = a.matrix(g.raw.N)
	return err
}
