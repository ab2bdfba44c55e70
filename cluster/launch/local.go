package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"dorylus/cluster/certs"
	"dorylus/cluster/member"
	"dorylus/cluster/rpc"
)

// listenFD is the descriptor with which a server on this machine inherits its socket.
const listenFD = 3

// certificateLife is longer than any run on one machine.
const certificateLife = 90 * 24 * time.Hour

// Local is what servers on this machine have in common: free ports of loopback, held
// open from now until Close, so that nobody else gets them between two attempts; and
// certificates in a folder that only this user can read. What a launcher that was killed has
// left of its own is removed when the next one opens.
type Local struct {
	Servers []member.Placed
	sockets []*os.File
	dir     string
	mark    *os.File // locked while dir is in use; nil where that is not possible
}

// OpenLocal makes ready for so many graph servers and parameter servers.
func OpenLocal(graphs, params int) (l *Local, err error) {
	l = &Local{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	for i := range graphs + params {
		p := member.Placed{Role: member.Graph, Rank: i, Host: "127.0.0.1"}
		if i >= graphs {
			p.Role, p.Rank = member.Param, i-graphs
		}
		if err := l.add(p); err != nil {
			return l, fmt.Errorf("find a free port for %s %d: %w", p.Role.Words(), p.Rank, err)
		}
	}
	if l.dir, l.mark, err = openFolder(); err != nil {
		return l, err
	}
	_, err = certs.Write(l.Certs(), certs.Plan{Run: certs.DevRun, Graphs: graphs, Params: params, Hosts: []string{"127.0.0.1"}, Life: certificateLife})
	return l, err
}

// add opens a port for p.
func (l *Local) add(p member.Placed) error {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	socket, err := lis.(*net.TCPListener).File()
	if err != nil {
		return errors.Join(err, lis.Close())
	}
	p.Address = lis.Addr().String()
	l.Servers, l.sockets = append(l.Servers, p), append(l.sockets, socket)
	return lis.Close() // socket is another descriptor of it
}

// Certs is the folder with the servers' certificates, as certs.Write makes it.
func (l *Local) Certs() string { return filepath.Join(l.dir, "certs") }

// Processes are the servers of spec as processes of program.
func (l *Local) Processes(program string, env []string, spec *Spec) []Server {
	var all []Server
	for i, p := range l.Servers {
		files := certs.Paths(l.Certs(), rpc.Role(p.Role), p.Rank)
		args := append(spec.Args(p), fmt.Sprintf("--listen-fd=%d", listenFD), "--cert="+files.Cert, "--key="+files.Key, "--ca="+files.CA)
		all = append(all, Server{Placed: p, Path: program, Args: args, Env: env, Files: []*os.File{l.sockets[i]}})
	}
	return all
}

// Close frees the ports and removes the certificates.
func (l *Local) Close() error {
	var errs []error
	for _, s := range l.sockets {
		errs = append(errs, s.Close())
	}
	l.sockets = nil
	if l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	if l.mark != nil {
		errs = append(errs, l.mark.Close())
		l.mark = nil
	}
	return errors.Join(errs...)
}
