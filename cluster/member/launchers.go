package member

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// torchrun sets RANK and WORLD_SIZE, as Kubeflow's trainer does. It says where rank 0
// is, not the others, so unless all are on one host they meet there. MASTER_PORT itself
// may be taken by torchrun's own store: the next one is used.
func torchrun(env vars, a Ask) (*found, error) {
	if env["RANK"] == "" || env["WORLD_SIZE"] == "" {
		return nil, nil
	}
	rank, world, err := env.pair("RANK", "WORLD_SIZE")
	if err != nil {
		return nil, err
	}
	f := &found{rank: rank, world: world, rankVar: "RANK=" + env["RANK"]}
	f.source = fmt.Sprintf("torchrun (%s, WORLD_SIZE=%d)", f.rankVar, world)
	if env["LOCAL_RANK"] != "" {
		if f.local, err = env.number("LOCAL_RANK"); err != nil {
			return nil, err
		}
	}
	if env["TORCHELASTIC_RESTART_COUNT"] != "" {
		if f.attempt, err = env.number("TORCHELASTIC_RESTART_COUNT"); err != nil {
			return nil, err
		}
	}
	master := env["MASTER_ADDR"]
	if master == "" {
		return f, nil
	}
	if env["LOCAL_WORLD_SIZE"] == env["WORLD_SIZE"] {
		f.place = places(repeat(master, world), a.port())
		return f, nil
	}
	port := 29500
	if env["MASTER_PORT"] != "" {
		if port, err = env.number("MASTER_PORT"); err != nil {
			return nil, err
		}
	}
	if f.meet, err = address(net.JoinHostPort(master, strconv.Itoa(port+1)), 0); err != nil {
		return nil, fmt.Errorf("MASTER_ADDR=%s, MASTER_PORT=%d: %w", master, port, err)
	}
	return f, nil
}

// openMPI counts processes; where they are is in the host file given to mpirun, or all
// of them are here.
func openMPI(env vars, a Ask) (*found, error) {
	return mpi(env, a, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
}

// pmi is what MPICH, Intel MPI and others set.
func pmi(env vars, a Ask) (*found, error) {
	return mpi(env, a, "MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
}

func mpi(env vars, a Ask, name, rankVar, sizeVar, localRank, localSize string) (*found, error) {
	if env[rankVar] == "" {
		return nil, nil
	}
	rank, world, err := env.pair(rankVar, sizeVar)
	if err != nil {
		return nil, err
	}
	f := &found{rank: rank, world: world, rankVar: rankVar + "=" + env[rankVar]}
	f.source = fmt.Sprintf("%s (%s, %s=%d)", name, f.rankVar, sizeVar, world)
	if env[localRank] != "" {
		if f.local, err = env.number(localRank); err != nil {
			return nil, err
		}
	}
	switch {
	case a.Hosts != nil:
		hosts := slots(a.Hosts)
		if len(hosts) < world {
			return nil, fmt.Errorf("%s: %s has %d slots for %d processes: add hosts, or slots=N to a line", f.source, a.HostsFile, len(hosts), world)
		}
		f.place = places(hosts[:world], a.port())
	case env[localSize] == env[sizeVar]:
		f.place = places(repeat("127.0.0.1", world), a.port())
	}
	return f, nil
}

// awsBatch is a multi-node parallel job: it names the main node only, so all meet there.
func awsBatch(env vars, a Ask) (*found, error) {
	const index, size, mainIndex, mainAddr = "AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES", "AWS_BATCH_JOB_MAIN_NODE_INDEX", "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"
	if env[index] == "" {
		return nil, nil
	}
	rank, world, err := env.pair(index, size)
	if err != nil {
		return nil, err
	}
	f := &found{rank: rank, world: world, rankVar: index + "=" + env[index]}
	f.source = fmt.Sprintf("AWS Batch (%s, %s=%d)", f.rankVar, size, world)
	mainNode := 0
	if env[mainIndex] != "" {
		if mainNode, err = env.number(mainIndex); err != nil {
			return nil, err
		}
	}
	if mainNode != 0 {
		return nil, fmt.Errorf("%s: %s=%d: graph server 0 has to be the main node; set mainNode to 0 in the job definition", f.source, mainIndex, mainNode)
	}
	if env["AWS_BATCH_JOB_ATTEMPT"] != "" {
		n, err := env.number("AWS_BATCH_JOB_ATTEMPT")
		if err != nil {
			return nil, err
		}
		f.attempt = max(0, n-1) // AWS counts from 1
	}
	// The main node has no variable with its own address: it listens on all.
	main := env[mainAddr]
	if main == "" && rank != 0 {
		return nil, fmt.Errorf("%s: %s is not set, so the main node cannot be found", f.source, mainAddr)
	}
	if main == "" {
		main = "0.0.0.0"
	}
	f.meet = net.JoinHostPort(main, strconv.Itoa(a.port()-1))
	return f, nil
}

// places gives each process the host's next port.
func places(hosts []string, port int) []string {
	next := map[string]int{}
	all := make([]string, len(hosts))
	for i, h := range hosts {
		all[i] = net.JoinHostPort(h, strconv.Itoa(port+next[h]))
		next[h]++
	}
	return all
}

func repeat(host string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = host
	}
	return all
}

// ordinal splits "name-3".
func ordinal(host string) (name string, n int, ok bool) {
	host, _, _ = strings.Cut(host, ".")
	i := strings.LastIndexByte(host, '-')
	if i < 1 {
		return "", 0, false
	}
	n, err := strconv.Atoi(host[i+1:])
	return host[:i], n, err == nil && n >= 0
}
