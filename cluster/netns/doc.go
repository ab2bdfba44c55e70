// Package netns makes hosts of network namespaces on one Linux machine, joined by slow and
// lossy links that can be cut, and runs the program's servers on them: what a run on
// several machines meets, in a test. It needs root.
//
// Where the kernel has netem, links are pairs of veth devices with tc's netem. Where it
// has not, each host has a TUN device, and this process carries the packets: a relay with
// the same rate, delay and seeded loss.
//
// The tests with servers are long, and run by make test-netns and make soak only.
package netns
