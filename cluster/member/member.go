// Package member finds out which server of a run this process is, and where the others
// are: from flags, from the variables of the launcher that started it (torchrun,
// Kubernetes, Slurm, MPI, AWS Batch), from a host file, or where there is none of these
// from leases in etcd. It never starts a machine.
//
// A launcher that knows roles (a job for each, as in Kubernetes) numbers each role from
// 0. One that only numbers processes gives the first ranks to graph servers and the rest
// to parameter servers; how many of the latter is for the user to say.
package member

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Role is what a server does.
type Role string

// Roles.
const (
	Graph Role = "graph" // owns a partition
	Param Role = "param" // owns rows of the parameters
)

// Words says it to people.
func (r Role) Words() string {
	if r == Param {
		return "parameter server"
	}
	return "graph server"
}

// DefaultPort is where a server listens if nothing else is said; further servers on the
// same host take the ports that follow.
const DefaultPort = 7070

// Membership is a server's place in a run.
type Membership struct {
	Role Role
	Rank int // in its role
	// Graphs and Params are the addresses, host:port, of all servers by rank. Where Meet is
	// set only their number is known, and Exchange fills them in.
	Graphs, Params []string
	// Meet is where the servers tell each other their addresses, since their launcher does
	// not; "" if they are known. Graph server 0 listens there.
	Meet string
	// Local is the number of servers on this host that come before this one.
	Local int
	// Attempt is how often the launcher has restarted the run.
	Attempt int
	// alone: there are no parameter servers.
	alone bool
	// Source says where all this is from: "Slurm (SLURM_PROCID=3, SLURM_JOB_NODELIST=n[1-4])".
	Source string
}

// Self is this server's own address.
func (m Membership) Self() string {
	if m.Role == Param {
		return m.Params[m.Rank]
	}
	return m.Graphs[m.Rank]
}

// String is one line for people.
func (m Membership) String() string {
	if m.alone {
		return fmt.Sprintf("%s %d of %d, by %s", m.Role.Words(), m.Rank, m.size(m.Role), m.Source)
	}
	return fmt.Sprintf("%s %d of %d, with %s, by %s", m.Role.Words(), m.Rank, m.size(m.Role), m.others(), m.Source)
}

func (m Membership) size(r Role) int {
	if r == Param {
		return len(m.Params)
	}
	return len(m.Graphs)
}

func (m Membership) others() string {
	other := Param
	if m.Role == Param {
		other = Graph
	}
	n := m.size(other)
	if n == 1 {
		return "1 " + other.Words()
	}
	return fmt.Sprintf("%d %ss", n, other.Words())
}

// Peers are the servers of one role as a flag names them.
type Peers struct {
	Addrs []string // host:port by rank; nil: not given
	Count int      // how many, where only that was given; else the length of Addrs
}

// Given says that the flag was used.
func (p Peers) Given() bool { return p.Count > 0 }

// ParsePeers reads "a:7070,b:7070", or "4" where the launcher knows the addresses. A
// host without a port gets DefaultPort. "" is not given.
func ParsePeers(text string) (Peers, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Peers{}, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > maxServers {
			return Peers{}, fmt.Errorf("%s servers: give 1 to %d, or their addresses", text, maxServers)
		}
		return Peers{Count: n}, nil
	}
	var p Peers
	for _, a := range strings.Split(text, ",") {
		a, err := address(strings.TrimSpace(a), DefaultPort)
		if err != nil {
			return Peers{}, err
		}
		p.Addrs = append(p.Addrs, a)
	}
	p.Count = len(p.Addrs)
	return p, nil
}

// maxServers bounds what a wrong number can cost.
const maxServers = 1 << 16

// address completes host or host:port.
func address(text string, port int) (string, error) {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		if strings.Contains(text, ":") && net.ParseIP(text) == nil {
			return "", fmt.Errorf("address %q: give host:port", text)
		}
		host, number = text, strconv.Itoa(port)
	}
	if host == "" || strings.ContainsAny(host, " \t/@") {
		return "", fmt.Errorf("address %q: give host:port", text)
	}
	if n, err := strconv.Atoi(number); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("address %q: its port is not between 1 and 65535", text)
	}
	return net.JoinHostPort(host, number), nil
}

// check holds a membership together: distinct addresses, a rank below their number.
func (m Membership) check() error {
	var errs []error
	if len(m.Graphs) == 0 {
		errs = append(errs, errors.New("there is no graph server: name them by --graphs"))
	}
	if len(m.Params) == 0 && !m.alone {
		errs = append(errs, errors.New("there is no parameter server: name them by --params"))
	}
	if n := m.size(m.Role); n > 0 && (m.Rank < 0 || m.Rank >= n) {
		errs = append(errs, fmt.Errorf("rank %d of %d %ss: ranks go from 0 to %d", m.Rank, n, m.Role.Words(), n-1))
	}
	seen := map[string]bool{}
	for _, a := range slices.Concat(m.Graphs, m.Params) {
		if a != "" && seen[a] {
			errs = append(errs, fmt.Errorf("address %s is given to two servers: each needs one of its own", a))
		}
		seen[a] = true
	}
	return errors.Join(errs...)
}
