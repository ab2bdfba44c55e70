package pipeline

import (
	"fmt"
	"strings"
)

// describe says what an epoch of the pass computes: the steps, the rows of each
// level, the memory of its buffers.
func (p *pass) describe() []string {
	var steps []string
	for _, s := range p.steps {
		steps = append(steps, fmt.Sprintf("%s(%d)", s.Name, s.Layer))
	}
	out := []string{"steps: " + strings.Join(steps, " > ")}
	var rows []string
	for _, n := range p.plan.Total {
		rows = append(rows, fmt.Sprintf("%d", n))
	}
	out = append(out, fmt.Sprintf("rows per level, input first: %s", strings.Join(rows, ", ")))
	var bytes int64
	for b, m := range p.full {
		if m == nil || p.prog.Bufs[b].Const {
			continue
		}
		bytes += 4 * int64(m.Rows) * int64(m.Stride)
		if pub := p.pub[b].rows; pub != nil && pub != m {
			bytes += 4 * int64(pub.Rows) * int64(pub.Stride)
		}
	}
	out = append(out, fmt.Sprintf("activations and gradients: %.1f MiB", float64(bytes)/(1<<20)))
	return out
}
