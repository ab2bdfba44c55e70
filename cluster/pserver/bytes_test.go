package pserver

import (
	"sync"
	"testing"

	"dorylus/engine/optim"
	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// TestBytes holds what goes over the wire to what must: of gradients a matrix per subtree,
// of weights each version once per client; all else is small.
func TestBytes(t *testing.T) {
	testkit.Leaks(t)
	const epochs, blocks, graphs = 10, 64, 4
	x := serveAll(t, 2, nil)
	var spans []kernels.Span
	var wants []ClientConfig
	for r := range graphs {
		spans = append(spans, kernels.Span{Lo: r * blocks / graphs, Hi: (r + 1) * blocks / graphs})
		wants = append(wants, x.want(r, graphs, blocks, spans[r], optim.Config{}))
	}
	clients := joined(t, wants...)
	before := make([]Counters, graphs)
	var wg sync.WaitGroup
	for r, c := range clients {
		before[r] = c.Counters()
		wg.Go(func() {
			if _, err := train(t.Context(), c, spans[r], epochs, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var model int64
	for _, s := range net {
		model += 4 * values(s)
	}
	for r, c := range clients {
		now := c.Counters()
		sent, received := now.Sent-before[r].Sent, now.Received-before[r].Received
		t.Logf("client %d: a model of %d bytes, %d sent and %d received per epoch", r, model, sent/epochs, received/epochs)
		// Frames and heads: 64 bytes a tensor and shard, some 200 a message.
		if most := epochs * (model + 8192); sent > most || received > most {
			t.Errorf("client %d sent %d bytes and received %d in %d epochs with a model of %d, at most %d can be explained", r, sent, received, epochs, model, most)
		}
	}
}
