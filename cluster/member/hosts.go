package member

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// Host is a line of a host file: a machine, perhaps with the role and the number of its
// servers.
type Host struct {
	Name  string // or USER@NAME, for ssh
	Port  int    // 0: not given
	Role  Role   // "": not given
	Slots int    // servers on it, 1 if not given
}

// ReadHosts reads a host file: a host a line, then in any order a port, graph or param,
// and slots=N. Text after # is a comment. DGL's ip_config ("10.0.0.1 30050") and
// mpirun's host files ("n1 slots=4", "n1:4") are such files; there a number after a
// colon is one of slots if it is below 1024.
func ReadHosts(r io.Reader) ([]Host, error) {
	var hosts []Host
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		h, err := parseHost(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		hosts = append(hosts, h)
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("it names no host: write one a line")
	}
	return hosts, nil
}

func parseHost(words []string) (Host, error) {
	h := Host{Name: words[0], Slots: 1}
	if name, number, err := net.SplitHostPort(words[0]); err == nil {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 65535 {
			return h, fmt.Errorf("%s: %q is no port", words[0], number)
		}
		h.Name = name
		if n < 1024 {
			h.Slots = n
		} else {
			h.Port = n
		}
	}
	if h.Name == "" || strings.ContainsAny(h.Name, ",;'\"$`") || strings.HasPrefix(h.Name, "-") {
		return h, fmt.Errorf("%q is no host name", words[0])
	}
	for _, w := range words[1:] {
		count, isCount := strings.CutPrefix(w, "slots=")
		n, err := strconv.Atoi(w)
		switch {
		case isCount:
			if h.Slots, err = strconv.Atoi(count); err != nil || h.Slots < 1 || h.Slots > 1024 {
				return h, fmt.Errorf("%s: %s: give slots=N, 1 to 1024", h.Name, w)
			}
		case err == nil && n >= 1 && n <= 65535:
			h.Port = n
		case Role(w) == Graph || Role(w) == Param:
			h.Role = Role(w)
		default:
			return h, fmt.Errorf("%s: %q is neither a port, nor graph, param or slots=N", h.Name, w)
		}
	}
	return h, nil
}

// Placed is the address of a server and the host it is started on.
type Placed struct {
	Role    Role
	Rank    int
	Host    string // as in the file, perhaps with USER@
	Address string
}

// Place gives the servers of a host file their addresses. Lines with a role are of that
// role. Without any, there are params parameter servers, on the first lines after the
// graph servers, or beside them where no line is left: by default one, beside graph server 0.
func Place(hosts []Host, params, port int) ([]Placed, error) {
	if port == 0 {
		port = DefaultPort
	}
	var graph, param []Host
	for _, h := range hosts {
		for range h.Slots {
			if h.Role == Param {
				param = append(param, h)
			} else {
				graph = append(graph, h)
			}
		}
	}
	switch {
	case len(param) > 0 && params > 0 && params != len(param):
		return nil, fmt.Errorf("--params=%d, but %d lines are marked param: leave one of them out", params, len(param))
	case len(graph) == 0:
		return nil, fmt.Errorf("all lines are marked param: mark some graph, or none")
	case len(param) == 0:
		for i := range max(1, params) { // beside the graph servers
			param = append(param, graph[i%len(graph)])
		}
	}
	next := map[string]int{}
	taken := map[string]bool{}
	var all []Placed
	add := func(r Role, rank int, h Host) error {
		login := h.Name
		h.Name = h.Name[strings.LastIndexByte(h.Name, '@')+1:]
		if next[h.Name] == 0 {
			if next[h.Name] = port; h.Port != 0 {
				next[h.Name] = h.Port
			}
		}
		if h.Port > 0 && !taken[net.JoinHostPort(h.Name, strconv.Itoa(h.Port))] {
			next[h.Name] = h.Port
		}
		at := net.JoinHostPort(h.Name, strconv.Itoa(next[h.Name]))
		for taken[at] {
			next[h.Name]++
			at = net.JoinHostPort(h.Name, strconv.Itoa(next[h.Name]))
		}
		if next[h.Name] > 65535 {
			return fmt.Errorf("host %s: port %d is above 65535", h.Name, next[h.Name])
		}
		taken[at] = true
		all = append(all, Placed{r, rank, login, at})
		return nil
	}
	for i, h := range graph {
		if err := add(Graph, i, h); err != nil {
			return nil, err
		}
	}
	for i, h := range param {
		if err := add(Param, i, h); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// byHosts is the place of a rank in a host file: in its role, or without one among all
// servers, graph servers first.
func byHosts(a Ask) (Membership, error) {
	m := Membership{Role: a.Role, Rank: a.Rank, Source: fmt.Sprintf("host file %s (--rank=%d)", a.HostsFile, a.Rank), alone: a.Alone}
	all, err := Place(a.Hosts, a.Params.Count, a.Port)
	if err != nil {
		return m, fmt.Errorf("%s: %w", m.Source, err)
	}
	for _, p := range all {
		switch {
		case p.Role == Graph:
			m.Graphs = append(m.Graphs, p.Address)
		case !a.Alone:
			m.Params = append(m.Params, p.Address)
		}
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

// slots repeats each host as often as it has slots.
func slots(hosts []Host) []string {
	var all []string
	for _, h := range hosts {
		all = append(all, repeat(h.Name, h.Slots)...)
	}
	return all
}
