package netns

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// hasNetem says why the kernel cannot shape links by itself; nil: it can.
func hasNetem(namespace string) error {
	if out, err := exec.Command("tc", strings.Fields("-n "+namespace+" qdisc add dev lo root netem delay 1ms")...).CombinedOutput(); err != nil {
		return fmt.Errorf("tc says: %s", bytes.TrimSpace(bytes.TrimPrefix(out, []byte("Error: "))))
	}
	return commands("tc", "-n "+namespace+" qdisc del dev lo root")
}

// mesh is a pair of veth devices for each two hosts, with a netem at both ends.
type mesh struct {
	hosts []Host
	shape Shape
}

func openMesh(hosts []Host, s Shape) (*mesh, error) {
	m := &mesh{hosts, s}
	for a, h := range hosts {
		if err := commands("ip", fmt.Sprintf("-n %s addr add %s/32 dev lo", h.Namespace, h.Addr)); err != nil {
			return nil, err
		}
		for b := range a {
			if err := m.join(a, b); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// device is a's end of its link with b.
func device(a, b int) string { return fmt.Sprintf("d%d-%d", a, b) }

func (m *mesh) join(a, b int) error {
	x, y := m.hosts[a], m.hosts[b]
	if err := commands("ip", fmt.Sprintf("link add %s netns %s type veth peer name %s netns %s", device(a, b), x.Namespace, device(b, a), y.Namespace)); err != nil {
		return err
	}
	for _, e := range [][2]int{{a, b}, {b, a}} {
		me, other := m.hosts[e[0]], m.hosts[e[1]]
		if err := commands("ip",
			fmt.Sprintf("-n %s link set %s up mtu %d", me.Namespace, device(e[0], e[1]), mtu),
			fmt.Sprintf("-n %s route add %s/32 dev %s src %s", me.Namespace, other.Addr, device(e[0], e[1]), me.Addr),
		); err != nil {
			return err
		}
		if err := commands("tc", netemLine("add", me.Namespace, device(e[0], e[1]), m.shape)); err != nil {
			return err
		}
	}
	return nil
}

// netemLine is the call of tc that gives a device its shape.
func netemLine(verb, namespace, device string, s Shape) string {
	line := fmt.Sprintf("-n %s qdisc %s dev %s root netem limit 10000 delay %dus loss %g%%", namespace, verb, device, s.Delay.Microseconds(), 100*s.Loss)
	if s.Rate > 0 {
		line += fmt.Sprintf(" rate %.0fbit", s.Rate)
	}
	return line
}

func (m *mesh) cut(a, b int, yes bool) error {
	s := m.shape
	if yes {
		s.Loss = 1
	}
	return commands("tc", netemLine("change", m.hosts[a].Namespace, device(a, b), s), netemLine("change", m.hosts[b].Namespace, device(b, a), s))
}

// close does nothing: the devices have gone with their namespaces.
func (m *mesh) close() error { return nil }
