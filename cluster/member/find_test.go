package member

import (
	"fmt"
	"strings"
	"testing"
)

// peers parses a flag.
func peers(t *testing.T, text string) Peers {
	t.Helper()
	p, err := ParsePeers(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// environment reads "A=1 B=2".
func environment(text string) map[string]string {
	env := map[string]string{}
	for _, kv := range strings.Fields(text) {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	return env
}

// Every launcher's variables, as it sets them, and the place that follows.
func TestFind(t *testing.T) {
	const job = "JOB_COMPLETION_INDEX=1 KUBERNETES_SERVICE_HOST=10.0.0.1 "
	for _, test := range []struct {
		name           string
		role           Role
		rank           int
		graphs, params string
		hosts          string
		env            string
		want           string // role rank graphs params local attempt meet
		source         string
	}{
		{"flags", Graph, 1, "a:1,b:2", "c", "", "RANK=0 WORLD_SIZE=9", "graph 1 [a:1 b:2] [c:7070] 0 0 ", "flags (--rank=1)"},
		{"flags, no role", "", 2, "a:1,b:2", "c:3", "", "", "param 0 [a:1 b:2] [c:3] 0 0 ", "flags"},
		{"IPv6", Param, 0, "[::1]:1,::2", "[fe80::3]:7", "", "", "param 0 [[::1]:1 [::2]:7070] [[fe80::3]:7] 0 0 ", "flags"},
		{"torchrun on one host", "", -1, "", "1", "", "RANK=2 WORLD_SIZE=3 LOCAL_RANK=2 LOCAL_WORLD_SIZE=3 MASTER_ADDR=n1 MASTER_PORT=29500 SLURM_PROCID=0 SLURM_NTASKS=1",
			"param 0 [n1:7070 n1:7071] [n1:7072] 2 0 ", "torchrun (RANK=2, WORLD_SIZE=3)"},
		{"torchrun on several", "", -1, "", "2", "", "RANK=1 WORLD_SIZE=5 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.0.0.4 TORCHELASTIC_RESTART_COUNT=3",
			"graph 1 [  ] [ ] 0 3 10.0.0.4:29501", "torchrun"},
		{"torchrun, addresses by flags", Graph, -1, "a,b", "c", "", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=m", "graph 1 [a:7070 b:7070] [c:7070] 0 0 ", "torchrun"},
		{"Indexed Job", Graph, -1, "2", "1", "", job + "HOSTNAME=my-run-graph-1", "graph 1 [my-run-graph-0.my-run:7070 my-run-graph-1.my-run:7070] [my-run-param-0.my-run:7070] 0 0 ", "Indexed Job (JOB_COMPLETION_INDEX=1"},
		{"JobSet", "", -1, "1", "2", "", job + "JOBSET_NAME=d REPLICATED_JOB_NAME=param JOB_INDEX=0 JOBSET_RESTART_ATTEMPT=4 HOSTNAME=d-param-0-1",
			"param 1 [d-graph-0-0.d:7070] [d-param-0-0.d:7070 d-param-0-1.d:7070] 0 4 ", "JobSet (JOBSET_NAME=d"},
		{"StatefulSet", Param, -1, "2", "2", "", "KUBERNETES_SERVICE_HOST=10.0.0.1 HOSTNAME=d-param-1", "param 1 [d-graph-0.d:7070 d-graph-1.d:7070] [d-param-0.d:7070 d-param-1.d:7070] 0 0 ", "StatefulSet (HOSTNAME=d-param-1)"},
		{"Slurm", "", -1, "", "1", "", "SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=n[08-09] SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_NODEID=1 SLURM_RESTART_COUNT=1",
			"param 0 [n08:7070 n08:7071 n09:7070] [n09:7071] 1 1 ", "Slurm (SLURM_PROCID=3, SLURM_NTASKS=4, SLURM_JOB_NODELIST=n[08-09])"},
		{"Slurm, cyclic", "", -1, "", "1", "", "SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3 SLURM_NTASKS=9 SLURM_STEP_ID=1 SLURM_STEP_NODELIST=a,b SLURM_JOB_NODELIST=a,b,c SLURM_STEP_TASKS_PER_NODE=2,1 SLURM_DISTRIBUTION=cyclic:block SLURM_NODEID=0",
			"param 0 [a:7070 b:7070] [a:7071] 1 0 ", "Slurm"},
		{"Slurm, parameter servers elsewhere", Graph, -1, "", "p1,p2", "", "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=a,b SLURM_TASKS_PER_NODE=1(x2)", "graph 1 [a:7070 b:7070] [p1:7070 p2:7070] 0 0 ", "Slurm"},
		{"Open MPI, one host", "", -1, "", "1", "", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2", "param 0 [127.0.0.1:7070] [127.0.0.1:7071] 1 0 ", "Open MPI"},
		{"Open MPI, host file", "", -1, "2", "1", "a slots=2\nb:2", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=2", "graph 0 [a:7070 a:7071] [b:7070] 0 0 ", "Open MPI"},
		{"MPICH", "", -1, "a,b", "c", "", "PMI_RANK=2 PMI_SIZE=3", "param 0 [a:7070 b:7070] [c:7070] 0 0 ", "MPI (PMI_RANK=2, PMI_SIZE=3)"},
		{"AWS Batch", "", -1, "", "1", "", "AWS_BATCH_JOB_NODE_INDEX=2 AWS_BATCH_JOB_NUM_NODES=3 AWS_BATCH_JOB_MAIN_NODE_INDEX=0 AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.1.2.3 AWS_BATCH_JOB_ATTEMPT=2",
			"param 0 [ ] [] 0 1 10.1.2.3:7069", "AWS Batch (AWS_BATCH_JOB_NODE_INDEX=2"},
		{"AWS Batch, main node", "", -1, "", "1", "", "AWS_BATCH_JOB_NODE_INDEX=0 AWS_BATCH_JOB_NUM_NODES=2", "graph 0 [] [] 0 0 0.0.0.0:7069", "AWS Batch"},
		{"host file", "", 3, "", "2", "10.0.0.1 30050\n10.0.0.2 30050 # DGL's ip_config\n", "", "param 1 [10.0.0.1:30050 10.0.0.2:30050] [10.0.0.1:30051 10.0.0.2:30051] 0 0 ", "host file ips (--rank=3)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := Ask{Role: test.role, Rank: test.rank, Graphs: peers(t, test.graphs), Params: peers(t, test.params)}
			if test.hosts != "" {
				var err error
				if a.Hosts, err = ReadHosts(strings.NewReader(test.hosts)); err != nil {
					t.Fatal(err)
				}
				a.HostsFile = "ips"
			}
			m, err := Find(a, environment(test.env))
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(m.Role, " ", m.Rank, " ", m.Graphs, " ", m.Params, " ", m.Local, " ", m.Attempt, " ", m.Meet)
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !strings.HasPrefix(m.Source, test.source) {
				t.Errorf("source %q, want %q...", m.Source, test.source)
			}
		})
	}
}

// What does not fit is refused with the variable and its value.
func TestFindRefuses(t *testing.T) {
	for _, test := range []struct {
		role           Role
		rank           int
		graphs, params string
		env            string
		want           []string
	}{
		{"", -1, "", "", "", []string{"give --rank", "--etcd=URL"}},
		{Graph, 0, "", "", "", []string{"--rank=0", "--graphs=HOST:PORT"}},
		{Graph, 2, "a,b", "c", "", []string{"rank 2 of 2 graph servers", "0 to 1"}},
		{Graph, 0, "a,b", "a", "", []string{"a:7070 is given to two servers"}},
		{"", -1, "", "1", "RANK=x WORLD_SIZE=2", []string{`RANK="x" is not a whole number`}},
		{"", -1, "", "1", "RANK=2 WORLD_SIZE=2 MASTER_ADDR=h", []string{"RANK=2", "not below", "2"}},
		{"", -1, "", "1", "RANK=0 WORLD_SIZE=99999999", []string{"WORLD_SIZE=99999999", "65536"}},
		{"", -1, "", "", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h", []string{"how many of the 2 processes", "--params=P"}},
		{"", -1, "", "1", "RANK=0 WORLD_SIZE=2", []string{"does not say where", "--hosts"}},
		{"", -1, "", "2", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h", []string{"--params=2 leaves no graph server"}},
		{"", -1, "3", "1", "RANK=0 WORLD_SIZE=3 MASTER_ADDR=h", []string{"--graphs names 3", "2 processes"}},
		{Graph, -1, "", "1", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h", []string{"RANK=1 is a parameter server", "serve param", "serve auto"}},
		{Graph, -1, "2", "1", "JOBSET_NAME=d REPLICATED_JOB_NAME=param JOB_COMPLETION_INDEX=0", []string{"this is a parameter server", "serve param"}},
		{Graph, -1, "2", "1", "JOBSET_NAME=d REPLICATED_JOB_NAME=graph", []string{"JOB_COMPLETION_INDEX is not set", "Indexed"}},
		{Graph, -1, "2", "1", "JOBSET_NAME=d REPLICATED_JOB_NAME=worker JOB_COMPLETION_INDEX=0", []string{"REPLICATED_JOB_NAME=worker", "graph or param"}},
		{Graph, -1, "2", "1", "JOBSET_NAME=d REPLICATED_JOB_NAME=graph JOB_COMPLETION_INDEX=0 JOB_INDEX=1", []string{"JOB_INDEX=1", "parallelism"}},
		{Graph, -1, "2", "", "JOBSET_NAME=d REPLICATED_JOB_NAME=graph JOB_COMPLETION_INDEX=0", []string{"how many parameter servers", "--params=N"}},
		{Graph, -1, "2", "1", "JOB_COMPLETION_INDEX=0 HOSTNAME=web-0", []string{"NAME-graph"}},
		{Graph, -1, "2", "1", "JOB_COMPLETION_INDEX=0 HOSTNAME=a-graph-1", []string{"host name does not end with the index"}},
		{Graph, -1, "2", "1", "JOB_COMPLETION_INDEX=2 HOSTNAME=a-graph-2", []string{"rank 2 of 2 graph servers"}},
		{"", -1, "", "1", "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_NODELIST=n[1-4]", []string{"SLURM_NTASKS=4", "SLURM_STEP_ID", "srun"}},
		{"", -1, "", "1", "SLURM_PROCID=0", []string{"SLURM_NTASKS is not set"}},
		{"", -1, "", "1", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=n[1-", []string{"SLURM_JOB_NODELIST=n[1-", "does not close"}},
		{"", -1, "", "1", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=n[1-2] SLURM_TASKS_PER_NODE=3,1", []string{"SLURM_TASKS_PER_NODE=3,1 has 4 tasks on 2 nodes, but there are 2"}},
		{"", -1, "", "1", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=n[1-2] SLURM_TASKS_PER_NODE=1(x3)", []string{"SLURM_TASKS_PER_NODE=1(x3)", "more than 2 nodes"}},
		{"", -1, "", "1", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=n[1-2] SLURM_TASKS_PER_NODE=1(x2) SLURM_DISTRIBUTION=plane=2", []string{"SLURM_DISTRIBUTION=plane=2", "--distribution=block"}},
		{"", -1, "", "1", "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=n[1-2] SLURM_TASKS_PER_NODE=1(x2) SLURM_NODEID=0", []string{"SLURM_NODEID=0", "n2"}},
		{"", -1, "", "1", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2", []string{"Open MPI", "does not say where"}},
		{"", -1, "", "1", "PMI_RANK=0", []string{`PMI_SIZE=""`}},
		{"", -1, "", "1", "AWS_BATCH_JOB_NODE_INDEX=1 AWS_BATCH_JOB_NUM_NODES=2 AWS_BATCH_JOB_MAIN_NODE_INDEX=1", []string{"AWS_BATCH_JOB_MAIN_NODE_INDEX=1", "mainNode"}},
		{"", -1, "", "1", "AWS_BATCH_JOB_NODE_INDEX=1 AWS_BATCH_JOB_NUM_NODES=2", []string{"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS is not set"}},
	} {
		t.Run(test.env, func(t *testing.T) {
			_, err := Find(Ask{Role: test.role, Rank: test.rank, Graphs: peers(t, test.graphs), Params: peers(t, test.params)}, environment(test.env))
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range test.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is missing in: %v", w, err)
				}
			}
		})
	}
}

func TestParsePeers(t *testing.T) {
	for _, bad := range []string{"a:b", "a:0", "a:70000", ":80", "a b:1", "0", "-1", "70000", "a,,b", "user@a:1", "http://a:1"} {
		if p, err := ParsePeers(bad); err == nil {
			t.Errorf("%q gives %v", bad, p)
		}
	}
}

func TestMembershipInWords(t *testing.T) {
	m := Membership{Role: Param, Rank: 1, Graphs: []string{"a:1"}, Params: []string{"b:1", "c:1"}, Source: "flags"}
	if got, want := m.String(), "parameter server 1 of 2, with 1 graph server, by flags"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if m.Self() != "c:1" {
		t.Errorf("self is %s", m.Self())
	}
}
