package dataset

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
)

func detectHeterophilous(in *input) bool {
	k := in.npzKeys()
	return k["edges"] && (k["node_features"] || k["node_labels"])
}

// readHeterophilous reads the layout of Platonov et al.: edges (E x 2), dense
// node_features, node_labels, and train_masks, val_masks, test_masks of one row per
// split. Each undirected edge is stored once; files named *_directed are directed.
func readHeterophilous(ctx context.Context, in *input) (*Raw, error) {
	b, err := in.openSelf()
	if err != nil {
		return nil, err
	}
	z, err := openNPZ(b)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	raw := &Raw{Name: in.base(), Format: "heterophilous-npz", Files: []string{path.Base(in.path)}}
	raw.Undirected = !strings.HasSuffix(raw.Name, "_directed")
	at := z.first("node_features", "node_labels")
	if at == "" {
		return nil, fmt.Errorf("read %s: neither node_features nor node_labels is in it; it has %s", b.name, z.keys())
	}
	a, err := z.array(at)
	if err != nil {
		return nil, err
	}
	rows, _, err := a.dims()
	if err != nil {
		return nil, err
	}
	if raw.N, err = vertexCount(a.name, int64(rows)); err != nil {
		return nil, err
	}
	if at == "node_features" {
		if raw.Dense, err = a.matrix(raw.N); err != nil {
			return nil, err
		}
	}
	if err := z.pairs(raw); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if z.has("node_labels") {
		if err := z.labels("node_labels", raw); err != nil {
			return nil, err
		}
	}
	return raw, z.masks(raw)
}

// pairs reads edges, E x 2.
func (n *npz) pairs(raw *Raw) error {
	a, err := n.array("edges")
	if err != nil {
		return err
	}
	if len(a.shape) != 2 || a.shape[1] != 2 {
		return fmt.Errorf("read %s: shape %v is not edges x 2", a.name, a.shape)
	}
	v, err := a.int32s("vertex", 0, int64(raw.N))
	if err != nil {
		return err
	}
	raw.Src, raw.Dst = make([]int32, len(v)/2), make([]int32, len(v)/2)
	for i := range raw.Src {
		raw.Src[i], raw.Dst[i] = v[2*i], v[2*i+1]
	}
	return nil
}

// masks reads the three mask matrices into splits "0", "1", ...
func (n *npz) masks(raw *Raw) error {
	for role, key := range []string{"train_masks", "val_masks", "test_masks"} {
		if !n.has(key) {
			continue
		}
		a, err := n.array(key)
		if err != nil {
			return err
		}
		splits := 1
		if len(a.shape) == 2 {
			splits = a.shape[0]
		}
		if len(a.shape) == 0 || a.shape[len(a.shape)-1] != raw.N {
			return fmt.Errorf("read %s: shape %v is not splits x %d vertices", a.name, a.shape, raw.N)
		}
		on, err := a.bools()
		if err != nil {
			return err
		}
		if len(raw.Splits) > 0 && len(raw.Splits) != splits {
			return fmt.Errorf("read %s: %d splits, but the masks before it have %d", a.name, splits, len(raw.Splits))
		}
		for s := range splits {
			if s == len(raw.Splits) {
				raw.Splits = append(raw.Splits, Split{Name: strconv.Itoa(s)})
			}
			*raw.Splits[s].role(role) = maskIDs(on[s*raw.N : (s+1)*raw.N])
		}
	}
	return nil
}

// role is Train, Val or Test by number.
func (s *Split) role(i int) *[]int32 {
	return [...]*[]int32{&s.Train, &s.Val, &s.Test}[i]
}

// maskIDs is the places where on is set.
func maskIDs(on []bool) []int32 {
	var ids []int32
	for v, o := range on {
		if o {
			ids = append(ids, int32(v))
		}
	}
	return ids
}
