package main

import "fmt"

// peers is what bench/gpu/peers.py writes.
type peers struct {
	Device  string   `json:"device"`
	Torch   string   `json:"torch"`
	PyG     string   `json:"pyg"`
	Missing []string `json:"missing"` // what could not be measured, and why
	SpMM    []struct {
		Width     int     `json:"width"`
		Precision string  `json:"precision"`
		CuSPARSE  float64 `json:"cusparse_ms"` // ALG2, preprocessed; 0: not measured
		Torch     float64 `json:"torch_ms"`
		Error     float64 `json:"error"`
	} `json:"spmm"`
	Ops []struct {
		Name string  `json:"name"`
		What string  `json:"what"`
		MS   float64 `json:"ms"`
	} `json:"ops"`
	Products []struct {
		Op        string `json:"op"`
		M, N, K   int
		Precision string  `json:"precision"`
		MS        float64 `json:"ms"`
	} `json:"products"`
	Epochs []struct {
		Name string  `json:"name"`
		MS   float64 `json:"ms"`
	} `json:"epochs"`
}

// beside is our gather and theirs of a width, in milliseconds.
type beside struct {
	Width        int     `json:"width"`
	Precision    string  `json:"precision"`
	Ours         float64 `json:"ours_ms"`
	CuSPARSE     float64 `json:"cusparse_ms,omitempty"`
	Torch        float64 `json:"torch_ms,omitempty"`
	OverCuSPARSE float64 `json:"times_cusparse,omitempty"` // how many times as fast as cuSPARSE
}

// compare puts gathers beside those of the peers.
func (r *result) compare() {
	if r.Kernels == nil || r.Emulated {
		return
	}
	for _, g := range r.Kernels.Gathers {
		if g.Op != "spmm" || g.Times == nil || g.Panel != 0 {
			continue
		}
		b := beside{Width: g.Width, Precision: g.Precision, Ours: g.Median}
		if r.Peers != nil {
			for _, p := range r.Peers.SpMM {
				if p.Width == g.Width && p.Precision == g.Precision {
					b.CuSPARSE, b.Torch = p.CuSPARSE, p.Torch
				}
			}
		}
		if b.CuSPARSE > 0 {
			b.OverCuSPARSE = b.CuSPARSE / b.Ours
		}
		r.Beside = append(r.Beside, b)
	}
}

// other is another op of ours beside the fastest of its peers, in milliseconds.
type other struct {
	Name  string  `json:"name"`
	Ours  float64 `json:"ours_ms"`
	Peer  string  `json:"peer"`
	MS    float64 `json:"peer_ms"`
	Times float64 `json:"times_peer"` // how many times as fast as the peer
}

// compareOthers puts ops and products beside those of the peers. What only one side has is
// left out.
func (r *result) compareOthers() {
	if r.Kernels == nil || r.Peers == nil || r.Emulated {
		return
	}
	add := func(name string, ours *Times, theirs map[string]float64) {
		o := other{Name: name}
		for what, ms := range theirs {
			if ms > 0 && (o.MS == 0 || ms < o.MS) {
				o.Peer, o.MS = what, ms
			}
		}
		if ours == nil || o.MS == 0 {
			return
		}
		o.Ours, o.Times = ours.Median, o.MS/ours.Median
		r.Others = append(r.Others, o)
	}
	for _, k := range r.Kernels.Ops {
		theirs := map[string]float64{}
		for _, p := range r.Peers.Ops {
			if p.Name == k.Name {
				theirs[p.What] = p.MS
			}
		}
		add(k.Name, k.Times, theirs)
	}
	for _, k := range r.Kernels.Products {
		theirs := map[string]float64{}
		for _, p := range r.Peers.Products {
			if p.Op == k.Op && p.M == k.M && p.N == k.N && p.K == k.K && p.Precision == k.Precision {
				theirs["cuBLAS through PyTorch"] = p.MS
			}
		}
		add(fmt.Sprintf("product %s of %d x %d x %d, %s", k.Op, k.M, k.N, k.K, k.Precision), k.Times, theirs)
	}
}

// form is one way to order a GCN's epoch, as the gathers that it needs: what they take one
// after the other, as measured; one backward is one forward, over a graph that is its own
// transpose. It leaves out products and all else. Epochs that the engine
// has trained are result.Epochs.
type form struct {
	Name     string   `json:"name"`
	Gathers  []string `json:"gathers"`
	MS       float64  `json:"ms"`
	AtL2     float64  `json:"at_l2_rate_ms"`
	AtMemory float64  `json:"at_memory_rate_ms"`
}

// addForms adds up the gathers of the four orders of a GCN 602 -> 128 -> 41; one of which a
// width was not measured is left out.
func (r *result) addForms() {
	if r.Kernels == nil || r.Emulated {
		return
	}
	type part struct {
		width     int
		precision string
	}
	wide, mid, few, bf16 := part{602, "fp32"}, part{128, "fp32"}, part{41, "fp32"}, part{41, "bf16"}
	for _, f := range []struct {
		name  string
		parts []part
	}{
		{"gather, then multiply", []part{wide, mid, mid}},
		{"the same, first aggregation kept", []part{mid, mid}},
		{"kept, narrower side first (the engine's)", []part{few, few}},
		{"the same, bf16", []part{bf16, bf16}},
	} {
		form, found := form{Name: f.name}, 0
		for _, p := range f.parts {
			form.Gathers = append(form.Gathers, fmt.Sprintf("%d %s", p.width, p.precision))
			for _, g := range r.Kernels.Gathers {
				if g.Times != nil && g.Op == "spmm" && g.Panel == 0 && (part{g.Width, g.Precision}) == p {
					form.MS, form.AtL2, form.AtMemory = form.MS+g.Median, form.AtL2+g.Times.AtL2, form.AtMemory+g.Times.AtMemory
					found++
				}
			}
		}
		if found == len(f.parts) {
			r.Forms = append(r.Forms, form)
		}
	}
}
