package kernels

import (
	"runtime"
	"sync"
)

// spreadEdges is about how many edges a span of Spread has: some tenths of a
// millisecond of work, so that handing it out costs nothing.
const spreadEdges = 1 << 18

// Spread calls f for spans that make up rows, of some 2^18 edges each or one row that
// has more, on as many goroutines as Go has processors, and waits for them. The offsets
// of rows must not fall. Spans come in any order; of the errors the one of the first
// rows is returned, and rows after it may not have been looked at.
func (g *CSR) Spread(rows Span, f func(Span) error) error {
	edges := g.RowPtr[rows.Hi] - g.RowPtr[rows.Lo]
	procs := min(runtime.GOMAXPROCS(0), int(edges/spreadEdges)+1)
	if procs == 1 {
		return f(rows)
	}
	var mu sync.Mutex
	next, bad := rows.Lo, rows.Hi // the first row not handed out; of the span that failed
	var failed error
	take := func() (s Span, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= bad {
			return Span{}, false
		}
		s = Span{Lo: next, Hi: next + 1}
		for s.Hi < rows.Hi && g.RowPtr[s.Hi+1]-g.RowPtr[s.Lo] <= spreadEdges {
			s.Hi++
		}
		next = s.Hi
		return s, true
	}
	var wg sync.WaitGroup
	for range procs {
		wg.Go(func() {
			for s, ok := take(); ok; s, ok = take() {
				if err := f(s); err != nil {
					mu.Lock()
					if s.Lo < bad {
						bad, failed = s.Lo, err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}
