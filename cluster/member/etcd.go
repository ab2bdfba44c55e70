package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Registry is a place where servers leave their addresses while they live. Etcd is one.
type Registry interface {
	// Register puts value under key until Close, or until this process is gone. Each
	// process's key is its own.
	Register(ctx context.Context, key, value string) error
	// Watch gives what is under prefix, oldest first, and again whenever it has changed,
	// until ctx ends, which closes the channel.
	Watch(ctx context.Context, prefix string) (<-chan []Entry, error)
	// Close takes back what this process has registered.
	Close() error
}

// Entry is what a Registry holds.
type Entry struct{ Key, Value string }

// record is the value of an entry.
type record struct {
	Role Role
	Addr string
}

// Lease is this server's place by a registry: ranks go by who came first, in each role.
// It waits until as many servers as a.Graphs and a.Params count are there; an error says
// how many of each are missing. The entry stays until r is closed.
func Lease(ctx context.Context, r Registry, a Ask, addr, name string) (Membership, error) {
	m := Membership{Role: a.Role, Source: fmt.Sprintf("etcd (job %s)", a.Job), alone: a.Alone}
	if a.Alone {
		a.Params = Peers{}
	}
	switch {
	case a.Job == "":
		return m, errors.New("etcd: name the run by --job, the same for all its servers")
	case a.Role == "":
		return m, errors.New("etcd: start servers by serve graph or serve param: their roles are not given by rank")
	case !a.Graphs.Given() && a.Alone:
		return m, errors.New("etcd: say how many servers there are: --graphs=N")
	case !a.Graphs.Given() || !a.Params.Given() && !a.Alone:
		return m, errors.New("etcd: say how many servers there are: --graphs=N --params=P")
	case a.Graphs.Addrs != nil || a.Params.Addrs != nil:
		return m, errors.New("etcd: it tells the addresses: give --graphs and --params as numbers")
	}
	value, err := json.Marshal(record{a.Role, addr})
	if err != nil {
		return m, err
	}
	prefix := "dorylus/" + a.Job + "/"
	if err := r.Register(ctx, prefix+name, string(value)); err != nil {
		return m, fmt.Errorf("etcd: register %s: %w", addr, err)
	}
	changes, err := r.Watch(ctx, prefix)
	if err != nil {
		return m, fmt.Errorf("etcd: look for the others: %w", err)
	}
	for entries := range changes {
		m.Rank = -1
		if err := m.assign(entries, prefix+name); err != nil {
			return m, err
		}
		// More than there should be: some are of servers that are gone, and will go too.
		if len(m.Graphs) == a.Graphs.Count && len(m.Params) == a.Params.Count && m.Rank >= 0 {
			return m, m.check()
		}
	}
	hint := ""
	if len(m.Graphs) > a.Graphs.Count || len(m.Params) > a.Params.Count {
		hint = "; is another run using the name?"
	}
	return m, fmt.Errorf("etcd: job %s: in time there came %d of %d graph servers and %d of %d parameter servers (%s)%s", a.Job,
		len(m.Graphs), a.Graphs.Count, len(m.Params), a.Params.Count, strings.Join(slices.Concat(m.Graphs, m.Params), ", "), hint)
}

// assign gives ranks to entries, which are oldest first.
func (m *Membership) assign(entries []Entry, own string) error {
	m.Graphs, m.Params = nil, nil
	for _, e := range entries {
		var r record
		if err := json.Unmarshal([]byte(e.Value), &r); err != nil {
			return fmt.Errorf("etcd: %s is %q: %w", e.Key, e.Value, err)
		}
		to := &m.Graphs
		switch r.Role {
		case Graph:
		case Param:
			to = &m.Params
		default:
			return fmt.Errorf("etcd: %s has role %q", e.Key, r.Role)
		}
		if e.Key == own {
			m.Rank = len(*to)
		}
		*to = append(*to, r.Addr)
	}
	return nil
}

// Reachable is the address that this process has towards a server at addr, with a port
// of its own.
func Reachable(addr string, port int) (string, error) {
	conn, err := net.Dial("udp", addr) // sends nothing
	if err != nil {
		return "", fmt.Errorf("find this host's address towards %s: %w", addr, err)
	}
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err := errors.Join(err, conn.Close()); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}
