package cuda

import "dorylus/kernels"

// scratch is n bytes of device memory until the op's end, uninitialised, on 256 bytes.
// Ops run one after the other on one stream: the next op may get the same.
func (x *runner) scratch(n int64) (address, error) { return x.arena.get(x.c, x.pool, n) }

// scratchMat is a matrix in scratch memory whose rows are PadCols(cols) apart.
func (x *runner) scratchMat(rows, cols int) (mat, error) {
	ld := kernels.PadCols(cols)
	p, err := x.scratch(4 * int64(rows) * int64(ld))
	return mat{p, int64(ld), rows, cols}, err
}

// arena is scratch memory: one block that grows to what the largest op needs.
type arena struct {
	block         address
	size          int64
	used          int64     // by the op that runs
	outgrown      []address // blocks that it has begun with
	outgrownBytes int64
}

func (a *arena) get(c context, p *pool, n int64) (address, error) {
	n = scratchBytes(n)
	if a.used+n > a.size {
		want := a.outgrownBytes + a.used + n
		if a.used == 0 && a.block != 0 { // no op has begun with it
			p.put(a.block)
			a.block, a.size = 0, 0
		}
		block, err := p.get(c, want, "scratch memory")
		if err != nil {
			return 0, err
		}
		if a.block != 0 {
			a.outgrown = append(a.outgrown, a.block)
			a.outgrownBytes += a.used
		}
		a.block, a.size, a.used = block, want, 0
	}
	at := a.block + address(a.used)
	a.used += n
	return at, nil
}

// scratchBytes is what n bytes take of the arena.
func scratchBytes(n int64) int64 { return max((n+255)/256*256, 256) }

// reserve makes room for all that an op will ask for, n bytes, before it asks for any.
func (a *arena) reserve(c context, p *pool, n int64) error {
	_, err := a.get(c, p, n)
	a.used = 0
	return err
}

// mark and release give back what was handed out since: not what the arena grew for.
func (a *arena) mark() arenaMark { return arenaMark{a.block, a.used} }

type arenaMark struct {
	block address
	used  int64
}

func (a *arena) release(m arenaMark) {
	if a.block == m.block {
		a.used = m.used
	}
}

func (a *arena) reset(p *pool) {
	for _, b := range a.outgrown {
		p.put(b)
	}
	a.outgrown, a.outgrownBytes, a.used = nil, 0, 0
}
