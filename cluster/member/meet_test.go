package member

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/cluster/rpc"
	"dorylus/engine/testkit"
)

// free is a loopback address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// server is one that meets the others.
type server struct {
	role Role
	rank int
	job  string
}

// meet lets servers of a run of graphs and params meet, and returns what each has got.
func meetAll(ctx context.Context, at string, graphs, params int, servers []server) ([]Membership, []error) {
	got, errs := make([]Membership, len(servers)), make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			m := Membership{Role: s.role, Rank: s.rank, Graphs: make([]string, graphs), Params: make([]string, params), Meet: at}
			port := 7000 + s.rank
			if s.role == Param {
				port += 100
			}
			got[i], errs[i] = Exchange(ctx, m, s.job, port, rpc.Plaintext())
		})
	}
	wg.Wait()
	return got, errs
}

func TestExchange(t *testing.T) {
	testkit.Leaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := []server{{Param, 0, "j"}, {Graph, 2, "j"}, {Graph, 1, "j"}, {Graph, 0, "j"}, {Param, 1, "j"}}
	got, errs := meetAll(ctx, free(t), 3, 2, all)
	want := "[127.0.0.1:7000 127.0.0.1:7001 127.0.0.1:7002] [127.0.0.1:7100 127.0.0.1:7101] "
	for i, m := range got {
		if s := fmt.Sprint(m.Graphs, " ", m.Params, " ", m.Meet); errs[i] != nil || s != want || m.Rank != all[i].rank {
			t.Errorf("%v got %s (%v), want %s", all[i], s, errs[i], want)
		}
	}
}

func TestExchangeAlone(t *testing.T) {
	testkit.Leaks(t)
	m, err := Exchange(t.Context(), Membership{Graphs: []string{"a:1"}}, "j", 1, nil)
	if err != nil || m.Graphs[0] != "a:1" {
		t.Errorf("nothing to exchange: %v, %v", m, err)
	}
}

func TestExchangeNamesWhoIsMissing(t *testing.T) {
	testkit.Leaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, errs := meetAll(ctx, free(t), 3, 1, []server{{Graph, 0, "j"}, {Graph, 1, "j"}})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "graph server 2, parameter server 0 did not come in time") {
		t.Errorf("graph server 0 says %v", errs[0])
	}
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "ask graph server 0 at 127.0.0.1") {
		t.Errorf("graph server 1 says %v", errs[1])
	}
}

func TestExchangeRefusesStrangers(t *testing.T) {
	testkit.Leaks(t)
	for want, stranger := range map[string]server{
		`belongs to job "other", this is "j"`: {Graph, 1, "other"},
		"no graph server 7 to come":           {Graph, 7, "j"},
		"graph server 1 is here already":      {Graph, 1, "j"},
		"no parameter server 0 to come":       {Param, 0, "j"},
		`there is no graph server 2 to come`:  {"none", 2, "j"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, errs := meetAll(ctx, free(t), 3, 0, []server{{Graph, 0, "j"}, {Graph, 1, "j"}, stranger})
		cancel()
		if text := fmt.Sprint(errs[1], errs[2]); !strings.Contains(text, want) {
			t.Errorf("%v: %s, want %s", stranger, text, want)
		}
	}
}
