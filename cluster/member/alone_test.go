package member

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Without parameter servers nobody asks for them, whoever starts the servers.
func TestAlone(t *testing.T) {
	peers := func(text string) Peers {
		p, err := ParsePeers(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for what, tc := range map[string]struct {
		ask  Ask
		env  map[string]string
		rank int
		want string
	}{
		"flags":          {Ask{Role: Graph, Rank: 1, Graphs: peers("a,b")}, nil, 1, "a:7070 b:7070"},
		"hosts":          {Ask{Role: Graph, Rank: 1, Hosts: []Host{{Name: "n1", Slots: 1}, {Name: "n2", Slots: 1}}}, nil, 1, "n1:7070 n2:7070"},
		"Slurm":          {Ask{Role: Graph, Rank: -1}, map[string]string{"SLURM_PROCID": "2", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "3", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_NNODES": "3", "SLURM_LOCALID": "0", "SLURM_NODEID": "2", "SLURM_TASKS_PER_NODE": "1(x3)"}, 2, "n1:7070 n2:7070 n3:7070"},
		"an Indexed Job": {Ask{Role: Graph, Rank: -1, Job: "r", Graphs: peers("2")}, map[string]string{"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "r-graph-1"}, 1, "r-graph-0.r:7070 r-graph-1.r:7070"},
	} {
		tc.ask.Alone = true
		m, err := Find(tc.ask, tc.env)
		if err != nil || m.Role != Graph || m.Rank != tc.rank || len(m.Params) > 0 || strings.Join(m.Graphs, " ") != tc.want {
			t.Errorf("%s: %+v, %v; want rank %d of %s", what, m, err, tc.rank, tc.want)
		}
		if s := m.String(); strings.Contains(s, "parameter server") {
			t.Errorf("%s: it says %q", what, s)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := Lease(ctx, &seat{board: newBoard()}, Ask{Role: Graph, Job: "j", Graphs: peers("1"), Alone: true}, "a:1", "x")
	if err != nil || len(m.Graphs) != 1 {
		t.Errorf("etcd: %+v, %v", m, err)
	}
	if _, err := Find(Ask{Role: Graph, Rank: 0, Alone: true}, nil); err == nil || strings.Contains(err.Error(), "--params") {
		t.Errorf("no addresses: %v", err)
	}
}
