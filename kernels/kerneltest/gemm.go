package kerneltest

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

var transposition = map[kernels.Trans]string{kernels.NN: "a·b", kernels.NT: "a·bᵀ", kernels.TN: "aᵀ·b"}

func gemmCases() []Case {
	var cases []Case
	for _, tr := range []kernels.Trans{kernels.NN, kernels.NT, kernels.TN} {
		cases = append(cases, byWidth("GEMM/"+transposition[tr], func(l *lab, width int) { gemm(l, tr, width) })...)
	}
	return append(cases, Case{"GEMM/special", gemmSpecial}, Case{"GEMM/epilogue", gemmEpilogue})
}

// product is one GEMM to compare.
type product struct {
	m, k, n int
	tr      kernels.Trans
	exact   bool
	ep      *kernels.Epilogue // without its bias
	bias    bool
	add     bool                   // AddGEMM
	fill    func(r, c int) float32 // nil: random
}

// try runs p and compares it element by element.
func (p product) try(l *lab, lay layout) {
	defer l.release()
	name := map[bool]string{false: "GEMM", true: "AddGEMM"}[p.add]
	t := l.trial(lay, "%s %s of %d x %d x %d, exact %v, %s, bias %v", name, transposition[p.tr], p.m, p.k, p.n, p.exact, describe(p.ep), p.bias)
	fill := p.fill
	if fill == nil {
		fill = random(l.rng, p.exact)
	}
	ar, ac, br, bc := p.m, p.k, p.k, p.n
	if p.tr == kernels.TN {
		ar, ac = ac, ar
	}
	if p.tr == kernels.NT {
		br, bc = bc, br
	}
	a, b := t.in("a", ar, ac, fill), t.in("b", br, bc, fill)
	var dst *array
	if p.add {
		dst = t.in("dst", p.m, p.n, fill)
		dst.out = true
	} else {
		dst = t.result("dst", p.m, p.n)
	}
	ep, bias := t.bias(p.ep, p.bias, p.n, p.exact)
	t.run(func(s kernels.Stream) {
		if p.add {
			s.AddGEMM(dst.view, a.view, b.view, p.tr, ep)
		} else {
			s.GEMM(dst.view, a.view, b.view, p.tr, ep)
		}
	})
	t.check(dst, kernels.Span{Hi: p.m}, func(i, j int) value {
		s := sum{exact: p.exact}
		if p.add {
			s.add(dst.val(i, j))
		}
		for k := range p.k {
			switch p.tr {
			case kernels.NN:
				s.add(a.val(i, k), b.val(k, j))
			case kernels.NT:
				s.add(a.val(i, k), b.val(j, k))
			case kernels.TN:
				s.add(a.val(k, i), b.val(k, j))
			}
		}
		return epilogue(s, 1, ep, bias, i, j)
	})
}

// bias completes an epilogue with a bias matrix of the trial's own.
func (t *trial) bias(ep *kernels.Epilogue, with bool, cols int, exact bool) (*kernels.Epilogue, *array) {
	if ep == nil || !with {
		return ep, nil
	}
	b := t.in("bias", 1, cols, random(t.rng, exact))
	full := *ep
	full.Bias = b.view
	return &full, b
}

// gemm: every transposition, with the width as each of the three sizes.
func gemm(l *lab, tr kernels.Trans, width int) {
	for i, lay := range layouts {
		exact := i == 0
		product{m: 13, k: 37, n: width, tr: tr, exact: exact}.try(l, lay)
		product{m: 5, k: width, n: 9, tr: tr, exact: exact}.try(l, lay)
		product{m: width, k: 3, n: 4, tr: tr, exact: exact}.try(l, lay)
	}
	product{m: 3, k: 0, n: width, tr: tr}.try(l, layouts[0])
	product{m: 0, k: 3, n: width, tr: tr}.try(l, layouts[0])
	product{m: 3, k: 3, n: 0, tr: tr}.try(l, layouts[0])
}

// gemmEpilogue: bias, activations and dropout at the end of each product.
func gemmEpilogue(l *lab) {
	for _, tr := range []kernels.Trans{kernels.NN, kernels.NT, kernels.TN} {
		for i, ep := range epilogues(l, 11) {
			product{m: 11, k: 29, n: 23, tr: tr, ep: ep, bias: i%2 == 0}.try(l, layouts[i%len(layouts)])
		}
		product{m: 11, k: 0, n: 23, tr: tr, ep: &kernels.Epilogue{Act: kernels.ReLU}, bias: true}.try(l, layouts[1])
	}
}

// gemmSpecial: NaN and Inf reach the rows and columns that they belong to and no
// others, and 0 times Inf is NaN.
func gemmSpecial(l *lab) {
	for _, tr := range []kernels.Trans{kernels.NN, kernels.NT, kernels.TN} {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			at := l.rng.IntN(12)
			n := 0
			product{m: 9, k: 10, n: 17, tr: tr, fill: func(r, c int) float32 {
				n++
				if n%50 == at {
					return float32(v)
				}
				return float32(l.rng.IntN(3))
			}}.try(l, layouts[2])
		}
	}
}

// epilogues is one of each activation, without and with dropout, with row ids and
// without, for outputs of the given rows.
func epilogues(l *lab, rows int) []*kernels.Epilogue {
	var eps []*kernels.Epilogue
	for a := kernels.Identity; a <= kernels.Tanh; a++ {
		for i, p := range []float32{0, 0.5, 0.3} {
			ep := &kernels.Epilogue{Act: a, Drop: kernels.Dropout{P: p, Key: kernels.DropKey(l.seed, int(a), i)}}
			if i == 2 {
				ep.Drop.IDs = scattered(l.rng, rows)
			}
			eps = append(eps, ep)
		}
	}
	return eps
}

func describe(ep *kernels.Epilogue) string {
	if ep == nil {
		return "no epilogue"
	}
	return fmt.Sprintf("activation %d, dropout %v, ids %v", ep.Act, ep.Drop.P, ep.Drop.IDs != nil)
}
