package netns

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
)

const (
	prefix = "dorylus-" // of namespaces, followed by the process that has made them
	mtu    = 1500
	most   = 200 // hosts
)

// Config says which hosts to make.
type Config struct {
	Hosts int
	Shape Shape
	// Seed of losses, by the relay.
	Seed uint64
	// Relay asks for the relay even where the kernel has netem.
	Relay bool
}

// Net is hosts, each of which has a link with each other one.
type Net struct {
	hosts []Host
	how   string
	links links
}

// Host is a machine of its own as far as its network goes.
type Host struct {
	Namespace string
	Addr      string // IPv4
}

// links are what joins hosts.
type links interface {
	cut(a, b int, yes bool) error
	close() error
}

// Open makes the hosts. It removes what processes that are no more have left.
func Open(c Config) (n *Net, err error) {
	if err := Missing(); err != nil {
		return nil, fmt.Errorf("make hosts: %w", err)
	}
	if c.Hosts < 2 || c.Hosts > most {
		return nil, fmt.Errorf("make %d hosts: give 2 to %d", c.Hosts, most)
	}
	if err := sweep(); err != nil {
		return nil, fmt.Errorf("remove old namespaces: %w", err)
	}
	n = &Net{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("make %d hosts: %w", c.Hosts, errors.Join(err, n.Close()))
			n = nil
		}
	}()
	for i := range c.Hosts {
		addr := net.IPv4(10, 77, 0, byte(i+1)).String()
		h := Host{fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), addr), addr}
		if _, err := command("ip", "netns", "add", h.Namespace); err != nil {
			return n, err
		}
		n.hosts = append(n.hosts, h)
		if err := commands("ip", "-n "+h.Namespace+" link set lo up"); err != nil {
			return n, err
		}
	}
	why := errors.New("not wanted")
	if !c.Relay {
		why = hasNetem(n.hosts[0].Namespace)
	}
	if why == nil {
		n.how = "tc netem: " + c.Shape.String()
		n.links, err = openMesh(n.hosts, c.Shape)
		return n, err
	}
	n.how = fmt.Sprintf("a relay between TUN devices: %v, seed %d (instead of tc netem: %v)", c.Shape, c.Seed, why)
	n.links, err = openRelay(n.hosts, c.Shape, c.Seed)
	return n, err
}

// How says what the links are.
func (n *Net) How() string { return n.how }

// Hosts are all hosts.
func (n *Net) Hosts() []Host { return slices.Clone(n.hosts) }

// Prefix and a host's address are its namespace.
func (n *Net) Prefix() string { return fmt.Sprintf("%s%d-", prefix, os.Getpid()) }

// Cut cuts the link between two hosts, or heals it. Packets vanish: nobody is told.
func (n *Net) Cut(a, b int, yes bool) error { return n.links.cut(a, b, yes) }

// Isolate cuts all links of a host, or heals them.
func (n *Net) Isolate(host int, yes bool) error {
	var errs []error
	for other := range n.hosts {
		if other != host {
			errs = append(errs, n.links.cut(host, other, yes))
		}
	}
	return errors.Join(errs...)
}

// Inside runs f on a thread of a host. Sockets that f opens are that host's.
func (n *Net) Inside(host int, f func() error) error { return inside(n.hosts[host].Namespace, f) }

// Processes are those that run on a host.
func (n *Net) Processes(host int) ([]int, error) { return pids(n.hosts[host].Namespace) }

// Kill ends all processes of a host by SIGKILL, and says how many there were.
func (n *Net) Kill(host int) (int, error) {
	running, err := n.Processes(host)
	for _, pid := range running {
		if e := syscall.Kill(pid, syscall.SIGKILL); e != nil && e != syscall.ESRCH {
			err = errors.Join(err, e)
		}
	}
	return len(running), err
}

// Listening are the TCP ports, in hexadecimal, at which somebody listens on a host.
func (n *Net) Listening(host int) ([]string, error) {
	var ports []string
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := command("ip", "netns", "exec", n.hosts[host].Namespace, "cat", file)
		if err != nil {
			return nil, err
		}
		for l := range strings.Lines(text) {
			if f := strings.Fields(l); len(f) > 3 && f[3] == "0A" {
				ports = append(ports, f[1][strings.LastIndexByte(f[1], ':')+1:])
			}
		}
	}
	return ports, nil
}

// Close ends what runs on the hosts and removes them.
func (n *Net) Close() error {
	var errs []error
	for _, h := range n.hosts {
		errs = append(errs, end(h.Namespace))
	}
	n.hosts = nil
	if n.links != nil {
		errs = append(errs, n.links.close())
	}
	return errors.Join(errs...)
}
