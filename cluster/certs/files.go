package certs

import (
	"crypto/ecdsa"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"dorylus/cluster/rpc"
)

// Plan says what Write makes.
type Plan struct {
	Run            string        // "": DevRun
	Graphs, Params int           // how many servers of each role
	Hosts          []string      // names and addresses put into all certificates
	Life           time.Duration // 0: 30 days
}

// Paths are the files of one server in a folder of Write.
func Paths(dir string, role rpc.Role, rank int) rpc.Files {
	name := fmt.Sprintf("%s-%d", role, rank)
	return rpc.Files{
		Cert: filepath.Join(dir, name+".pem"),
		Key:  filepath.Join(dir, name+"-key.pem"),
		CA:   filepath.Join(dir, "ca.pem"),
	}
}

// Write makes an authority and a certificate and key for each server in dir, which it
// makes too, and returns the names of the files. It overwrites nothing: files of two
// authorities would not fit each other. Where it fails it leaves none of its files.
func Write(dir string, p Plan) (names []string, err error) {
	if p.Run == "" {
		p.Run = DevRun
	}
	if p.Life == 0 {
		p.Life = 30 * 24 * time.Hour
	}
	if p.Graphs < 0 || p.Params < 0 || p.Graphs+p.Params == 0 {
		return nil, fmt.Errorf("make certificates for %d graph servers and %d parameter servers: want at least one server", p.Graphs, p.Params)
	}
	a, err := New(p.Run, p.Life)
	if err != nil {
		return nil, err
	}
	w := &writer{}
	w.roots(dir, a)
	for rank := range p.Graphs {
		w.server(dir, a, rpc.Graph, rank, p.Hosts)
	}
	for rank := range p.Params {
		w.server(dir, a, rpc.Param, rank, p.Hosts)
	}
	return w.done()
}

// Save makes a certificate and key for one server in dir, and the authority's own
// certificate beside it: one machine's share of Write.
func (a *Authority) Save(dir string, role rpc.Role, rank int, hosts []string) error {
	w := &writer{}
	w.roots(dir, a)
	w.server(dir, a, role, rank, hosts)
	_, err := w.done()
	return err
}

// A writer makes files until something goes wrong.
type writer struct {
	names []string
	err   error
}

func (w *writer) roots(dir string, a *Authority) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.err = fmt.Errorf("make certificates: %w", err)
		return
	}
	w.put(filepath.Join(dir, "ca.pem"), a.roots, 0o644)
}

func (w *writer) server(dir string, a *Authority, role rpc.Role, rank int, hosts []string) {
	if w.err != nil {
		return
	}
	cert, err := a.Issue(role, rank, hosts)
	if err != nil {
		w.err = err
		return
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		w.err = fmt.Errorf("make certificates: %w", err)
		return
	}
	f := Paths(dir, role, rank)
	w.put(f.Cert, block("CERTIFICATE", cert.Certificate[0]), 0o644)
	w.put(f.Key, block("PRIVATE KEY", key), 0o600)
}

func (w *writer) put(name string, text []byte, mode os.FileMode) {
	if w.err != nil {
		return
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if os.IsExist(err) {
		w.err = fmt.Errorf("make certificates: %s is there already; remove the old ones or choose another folder", name)
		return
	}
	if err != nil {
		w.err = fmt.Errorf("make certificates: %w", err)
		return
	}
	w.names = append(w.names, name)
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		w.err = fmt.Errorf("make certificates: write %s: %w", name, err)
	}
}

// done takes the files away again if not all of them could be made.
func (w *writer) done() ([]string, error) {
	if w.err == nil {
		return w.names, nil
	}
	for _, name := range w.names {
		os.Remove(name)
	}
	return nil, w.err
}
