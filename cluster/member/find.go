package member

import (
	"fmt"
	"strconv"
	"strings"
)

// Ask is what a server was told by flags.
type Ask struct {
	Role   Role // "": the one that its rank has, where the launcher only numbers processes
	Rank   int  // in its role, or without one in all; -1: not given
	Graphs Peers
	Params Peers
	// Alone says that there are no parameter servers, whatever Params says.
	Alone bool
	// Job is the name of the run: in Kubernetes that of the Service and the beginning of
	// the names of the Jobs.
	Job string
	// Port is where servers listen whose addresses come from a launcher; 0: DefaultPort.
	Port int
	// Hosts is a parsed host file, nil for none, and HostsFile its name.
	Hosts     []Host
	HostsFile string
}

func (a Ask) port() int {
	if a.Port == 0 {
		return DefaultPort
	}
	return a.Port
}

// found is what a launcher's variables say.
type found struct {
	source  string // "Slurm (SLURM_PROCID=3)"
	rankVar string // "SLURM_PROCID=3"
	rank    int
	// role is set by launchers that number each role by itself; the others number world
	// processes.
	role  Role
	world int
	// addr is the address of a role's server, nil where the launcher does not say; place
	// that of a process by its number.
	addr  func(r Role, rank int) string
	place []string
	meet  string
	// local is the number of processes before this one on its host, attempt that of
	// restarts.
	local, attempt int
}

// launchers look for their variables: nil, nil if these are not there.
var launchers = []func(env vars, a Ask) (*found, error){
	torchrun, jobSet, indexedJob, statefulSet, slurm, openMPI, pmi, awsBatch,
}

// Find is this process's place: by flags, else by the variables in env of the first
// launcher that is there. Errors name the variable and its value.
func Find(a Ask, env map[string]string) (Membership, error) {
	if a.Alone {
		a.Params = Peers{}
	}
	if a.Rank >= 0 {
		return byFlags(a)
	}
	for _, look := range launchers {
		f, err := look(vars(env), a)
		if err != nil {
			return Membership{}, err
		}
		if f != nil {
			m, err := f.settle(a)
			if err != nil {
				return Membership{}, fmt.Errorf("%s: %w", f.source, err)
			}
			return m, nil
		}
	}
	return Membership{}, fmt.Errorf("which server this is, is not known: give --rank, --graphs and --params (or --hosts=FILE), " +
		"start it by torchrun, Kubernetes, srun, mpirun or AWS Batch, or give --etcd=URL")
}

// byFlags is a place that flags, perhaps with a host file, say all about.
func byFlags(a Ask) (Membership, error) {
	m := Membership{Role: a.Role, Rank: a.Rank, Graphs: a.Graphs.Addrs, Params: a.Params.Addrs, Source: fmt.Sprintf("flags (--rank=%d)", a.Rank), alone: a.Alone}
	if a.Hosts != nil {
		return byHosts(a)
	}
	if m.Graphs == nil && a.Alone {
		return m, fmt.Errorf("--rank=%d: also give the addresses of all servers, --graphs=HOST:PORT,..., or --hosts=FILE", a.Rank)
	}
	if m.Graphs == nil || m.Params == nil && !a.Alone {
		return m, fmt.Errorf("--rank=%d: also give the addresses of all servers, --graphs=HOST:PORT,... and --params=HOST:PORT,..., or --hosts=FILE", a.Rank)
	}
	if m.Role == "" {
		if m.Role = Graph; m.Rank >= len(m.Graphs) {
			m.Role, m.Rank = Param, m.Rank-len(m.Graphs)
		}
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("%s: %w", m.Source, err)
	}
	return m, nil
}

// settle puts a launcher's words and the user's together.
func (f *found) settle(a Ask) (Membership, error) {
	m := Membership{Role: f.role, Rank: f.rank, Source: f.source, Local: f.local, Attempt: f.attempt, alone: a.Alone}
	if f.role != "" {
		if a.Role != "" && a.Role != f.role {
			return m, fmt.Errorf("this is a %s: start it with serve %s", f.role.Words(), f.role)
		}
		return m, f.fill(&m, a)
	}
	graphs, params, err := shares(f, a)
	if err != nil {
		return m, err
	}
	// A role whose addresses were given runs elsewhere, unless all of them are here.
	switch {
	case params == 0:
		m.Role = Graph
	case graphs == 0:
		m.Role = Param
	case f.rank < graphs:
		m.Role = Graph
	default:
		m.Role, m.Rank = Param, f.rank-graphs
	}
	if a.Role != "" && a.Role != m.Role {
		return m, fmt.Errorf("of %d processes the first %d are graph servers, so %s is a %s: start it with serve %s, or all of them with serve auto",
			f.world, graphs, f.rankVar, m.Role.Words(), m.Role)
	}
	m.Graphs, m.Params = a.Graphs.Addrs, a.Params.Addrs
	switch {
	case f.place != nil:
		if m.Graphs == nil {
			m.Graphs = f.place[:graphs]
		}
		if m.Params == nil {
			m.Params = f.place[graphs:]
		}
	case m.Graphs != nil && (m.Params != nil || a.Alone):
	case f.meet != "":
		m.Meet, m.Graphs, m.Params = f.meet, make([]string, graphs), make([]string, params)
	default:
		return m, fmt.Errorf("it does not say where the others are: give their addresses by --graphs and --params, or a --hosts=FILE")
	}
	return m, m.check()
}

// shares splits a world into graph servers, which come first, and parameter servers.
func shares(f *found, a Ask) (graphs, params int, err error) {
	if f.rank < 0 || f.rank >= f.world {
		return 0, 0, fmt.Errorf("%s is not below the number of processes, %d", f.rankVar, f.world)
	}
	given := a.Graphs.Addrs != nil && a.Params.Addrs != nil
	switch {
	case a.Alone:
		graphs = f.world
	case given && a.Graphs.Count+a.Params.Count == f.world:
		return a.Graphs.Count, a.Params.Count, nil
	case a.Params.Addrs != nil && a.Role != Param:
		graphs, params = f.world, 0
	case a.Graphs.Addrs != nil && a.Role == Param:
		graphs, params = 0, f.world
	case !a.Params.Given():
		return 0, 0, fmt.Errorf("say how many of the %d processes are parameter servers: --params=P", f.world)
	default:
		graphs, params = f.world-a.Params.Count, a.Params.Count
	}
	if want := a.Graphs.Count; a.Graphs.Given() && graphs > 0 && want != graphs {
		return 0, 0, fmt.Errorf("--graphs names %d servers, but there are %d processes for them (%d in all, %d of them parameter servers)", want, graphs, f.world, params)
	}
	if params > 0 && a.Params.Addrs != nil && a.Params.Count != params {
		return 0, 0, fmt.Errorf("--params names %d servers, but there are %d processes", a.Params.Count, params)
	}
	if graphs < 0 || graphs == 0 && a.Graphs.Addrs == nil {
		return 0, 0, fmt.Errorf("--params=%d leaves no graph server among %d processes", a.Params.Count, f.world)
	}
	return graphs, params, nil
}

// fill completes a place whose role has a numbering of its own.
func (f *found) fill(m *Membership, a Ask) error {
	for _, r := range []struct {
		role  Role
		peers Peers
		flag  string
		to    *[]string
	}{{Graph, a.Graphs, "graphs", &m.Graphs}, {Param, a.Params, "params", &m.Params}} {
		switch {
		case r.role == Param && a.Alone:
		case r.peers.Addrs != nil:
			*r.to = r.peers.Addrs
		case r.peers.Count == 0:
			return fmt.Errorf("say how many %ss there are: --%s=N", r.role.Words(), r.flag)
		default:
			for i := range r.peers.Count {
				*r.to = append(*r.to, f.addr(r.role, i))
			}
		}
	}
	return m.check()
}

// vars is an environment.
type vars map[string]string

// number is a variable's value, a whole number from 0 on.
func (v vars) number(name string) (int, error) {
	text := v[name]
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%q is not a whole number from 0 on", name, text)
	}
	return n, nil
}

// first is the first of these variables that is set, "" if none.
func (v vars) first(names ...string) string {
	for _, n := range names {
		if v[n] != "" {
			return n
		}
	}
	return ""
}

// pair reads a rank and the number of processes.
func (v vars) pair(rank, size string) (r, n int, err error) {
	if r, err = v.number(rank); err != nil {
		return 0, 0, err
	}
	if n, err = v.number(size); err != nil {
		return 0, 0, err
	}
	if n > maxServers {
		return 0, 0, fmt.Errorf("%s=%d: more than %d servers", size, n, maxServers)
	}
	return r, n, nil
}
