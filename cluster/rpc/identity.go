package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Files are PEM files: a certificate with those between it and the authority, its key,
// and the authorities that peers' certificates must come from.
type Files struct{ Cert, Key, CA string }

// Identity is what a process proves itself with, and whom it trusts. It is safe for
// concurrent use. Read from files, it follows them: each new connection uses what is in
// them then, or what was, where they cannot be read.
type Identity struct {
	plain bool
	files Files

	mu struct {
		sync.Mutex
		now  proof
		seen [3]stamp
	}
}

// A proof is an Identity at one time.
type proof struct {
	who  Who
	cert tls.Certificate
	pool *x509.CertPool
}

// A stamp tells a file from what it was.
type stamp struct {
	at   time.Time
	size int64
}

// Plaintext is the identity of a process that proves nothing and asks nobody: plain
// text, refused on addresses that are not loopback.
func Plaintext() *Identity { return &Identity{plain: true} }

// NewIdentity is an Identity that does not change.
func NewIdentity(cert tls.Certificate, pool *x509.CertPool) (*Identity, error) {
	p, err := newProof(cert, pool)
	if err != nil {
		return nil, err
	}
	id := &Identity{}
	id.mu.now = p
	return id, nil
}

// LoadIdentity reads an Identity from files.
func LoadIdentity(f Files) (*Identity, error) {
	id := &Identity{files: f}
	if err := id.reloadLocked(); err != nil {
		return nil, err
	}
	return id, nil
}

// Who is the name in the certificate; the zero value in plain text.
func (id *Identity) Who() Who {
	if id.plain {
		return Who{}
	}
	return id.current().who
}

// Plain says whether this is Plaintext.
func (id *Identity) Plain() bool { return id.plain }

// current is the proof for a connection that begins now.
func (id *Identity) current() proof {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.files != (Files{}) {
		// Files that are being replaced do not fit each other: the next connection looks
		// again, and this one uses what it has.
		_ = id.reloadLocked()
	}
	return id.mu.now
}

// reloadLocked reads the files if one of them has changed.
func (id *Identity) reloadLocked() error {
	var now [3]stamp
	for i, name := range []string{id.files.Cert, id.files.Key, id.files.CA} {
		s, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read an identity: %w", err)
		}
		now[i] = stamp{s.ModTime(), s.Size()}
	}
	if now == id.mu.seen {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(id.files.Cert, id.files.Key)
	if err != nil {
		return fmt.Errorf("read the certificate %s and its key %s: %w", id.files.Cert, id.files.Key, err)
	}
	text, err := os.ReadFile(id.files.CA)
	if err != nil {
		return fmt.Errorf("read the authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("read the authorities: %s holds no PEM certificate", id.files.CA)
	}
	p, err := newProof(cert, pool)
	if err != nil {
		return fmt.Errorf("read the certificate %s: %w", id.files.Cert, err)
	}
	id.mu.now, id.mu.seen = p, now
	return nil
}

func newProof(cert tls.Certificate, pool *x509.CertPool) (proof, error) {
	if len(cert.Certificate) == 0 || pool == nil {
		return proof{}, errors.New("make an identity: it needs a certificate and the authorities to trust")
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return proof{}, fmt.Errorf("make an identity: %w", err)
	}
	who, err := whoIn(leaf)
	if err != nil {
		return proof{}, err
	}
	if now := time.Now(); now.After(leaf.NotAfter) {
		return proof{}, fmt.Errorf("the certificate of %v has expired on %s: make a new one", who, leaf.NotAfter.Format(time.DateTime))
	}
	return proof{who, cert, pool}, nil
}

// whoIn is the name in a certificate.
func whoIn(leaf *x509.Certificate) (Who, error) {
	if len(leaf.URIs) != 1 {
		return Who{}, fmt.Errorf("the certificate of %q has %d URIs, want one: spiffe://RUN/ROLE/RANK", leaf.Subject.CommonName, len(leaf.URIs))
	}
	return ParseWho(leaf.URIs[0])
}
