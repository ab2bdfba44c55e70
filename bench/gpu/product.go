package main

import (
	"fmt"

	"dorylus/kernels"
)

// product is a GEMM of the model's layers.
type product struct {
	Op        string `json:"op"`
	M, N, K   int
	Precision string `json:"precision"`
	*Times
	TFlops float64 `json:"tflops,omitempty"`
}

// products measures the GEMMs of a GCN 602 -> 128 -> 41 and of its gradient.
func (b *bench) products() error {
	n := b.csr.Rows()
	for _, p := range []product{{Op: "nn", M: n, N: 128, K: 602}, {Op: "nn", M: n, N: 41, K: 128}, {Op: "tn", M: 602, N: 128, K: n}, {Op: "tn", M: 128, N: 41, K: n}, {Op: "nt", M: n, N: 128, K: 41}} {
		p.Precision = b.precision
		if err := b.product(p); err != nil {
			return fmt.Errorf("product %s of %d x %d x %d: %w", p.Op, p.M, p.N, p.K, err)
		}
	}
	return nil
}

func (b *bench) product(p product) error {
	ar, ac, br, bc, trans := p.M, p.K, p.K, p.N, kernels.NN
	switch p.Op {
	case "tn":
		ar, ac, trans = p.K, p.M, kernels.TN
	case "nt":
		br, bc, trans = p.N, p.K, kernels.NT
	}
	var mats []*kernels.Mat
	defer func() {
		for _, m := range mats {
			b.d.Free(m)
		}
	}()
	for _, s := range [][2]int{{ar, ac}, {br, bc}, {p.M, p.N}} {
		m, err := b.filled(s[0], s[1]) // zeros would need less power
		if err != nil {
			return err
		}
		mats = append(mats, m)
	}
	var err error
	if p.Times, err = b.time(nil, func() { b.s.GEMM(mats[2], mats[0], mats[1], trans, nil) }); err != nil {
		return err
	}
	if p.Times != nil {
		p.TFlops = 2 * float64(p.M) * float64(p.N) * float64(p.K) / p.Median / 1e9
	}
	b.out.Products = append(b.out.Products, p)
	return nil
}
