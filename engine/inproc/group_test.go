package inproc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"dorylus/engine/testkit"
)

func TestAllGetWhatAllGive(t *testing.T) {
	testkit.Leaks(t)
	g := NewGroup([]string{"a", "b", "c"})
	var wg sync.WaitGroup
	for rank := range 3 {
		wg.Go(func() {
			m := g.Member(rank)
			for round := range 20 {
				all, err := m.Gather(t.Context(), fmt.Sprint("key ", round), fmt.Append(nil, rank, round))
				if err == nil && fmt.Sprintf("%s", all) != fmt.Sprintf("[0 %d 1 %d 2 %d]", round, round, round) {
					err = fmt.Errorf("got %s", all)
				}
				if err != nil {
					t.Errorf("%d: %v", rank, err)
				}
				some, err := m.Collect(t.Context(), fmt.Sprint("some ", round), nil)
				if err != nil || (len(some) == 3) != (rank == 0) {
					t.Errorf("%d collects %d, %v", rank, len(some), err)
				}
			}
		})
	}
	wg.Wait()
	if len(g.pots) > 0 {
		t.Errorf("%d pots are left", len(g.pots))
	}
	g.Member(1).Stop("first")
	g.Member(2).Stop("second")
	for rank := range 3 {
		if why := <-g.Member(rank).Stopped(); why != "first" {
			t.Errorf("%d is stopped by %q", rank, why)
		}
	}
}

func TestAGroupThatCannotGoOn(t *testing.T) {
	testkit.Leaks(t)
	g := NewGroup([]string{"cuda:0", "cuda:1", "cuda:2"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Member(1).Gather(ctx, "k", nil); err == nil || !strings.Contains(err.Error(), "cuda:0, cuda:2 did not give theirs") {
		t.Errorf("%v", err)
	}
	if _, err := g.Member(1).Gather(ctx, "k", nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("the same key again: %v", err)
	}
	var wg sync.WaitGroup
	lost := errors.New("cuda:2: lost")
	wg.Go(func() {
		if _, err := g.Member(0).Gather(t.Context(), "other", nil); !errors.Is(err, lost) {
			t.Errorf("waiting ends by %v", err)
		}
	})
	g.Fail(lost)
	g.Fail(errors.New("later"))
	wg.Wait()
	if _, err := g.Member(0).Gather(t.Context(), "next", nil); !errors.Is(err, lost) {
		t.Errorf("after the failure: %v", err)
	}
}
