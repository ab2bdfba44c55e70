// Package certs makes certificates for a run on machines that have no authority of
// their own: a throw-away authority, and a certificate with a SPIFFE id per server.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"time"

	"dorylus/cluster/rpc"
)

// DevRun is the run in the certificates of a laptop.
const DevRun = "dorylus.local/dev"

// Authority signs certificates of one run. Its key exists in memory only: whoever holds
// the files of a run cannot make another server of it.
type Authority struct {
	run   string
	life  time.Duration
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	pool  *x509.CertPool
	roots []byte // PEM
}

// New is an authority for a run whose certificates are valid for life.
func New(run string, life time.Duration) (*Authority, error) {
	if life <= 0 {
		return nil, fmt.Errorf("make an authority for run %q: its certificates would be valid for %v", run, life)
	}
	if _, err := (rpc.Who{Run: run, Role: rpc.Graph}).URI(); err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	key, spec, err := draft("dorylus authority of "+run, life)
	if err != nil {
		return nil, err
	}
	spec.IsCA, spec.MaxPathLenZero = true, true
	spec.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, spec, spec, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make an authority for run %q: %w", run, err)
	}
	a := &Authority{run: run, life: life, key: key, pool: x509.NewCertPool()}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make an authority for run %q: %w", run, err)
	}
	a.pool.AddCert(a.cert)
	a.roots = block("CERTIFICATE", der)
	return a, nil
}

// Issue makes a certificate for a server of the run: its role and rank, which may be
// rpc.AnyRank. hosts are names and addresses for the benefit of other tools; servers of
// a run do not look at them.
func (a *Authority) Issue(role rpc.Role, rank int, hosts []string) (tls.Certificate, error) {
	who := rpc.Who{Run: a.run, Role: role, Rank: rank}
	uri, err := who.URI()
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	key, spec, err := draft("dorylus "+who.String(), a.life)
	if err != nil {
		return tls.Certificate{}, err
	}
	spec.KeyUsage = x509.KeyUsageDigitalSignature
	spec.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	spec.URIs = []*url.URL{uri}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			spec.IPAddresses = append(spec.IPAddresses, ip)
		} else {
			spec.DNSNames = append(spec.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, spec, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate for %v: %w", who, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Identity is Issue for a server in this process.
func (a *Authority) Identity(role rpc.Role, rank int) (*rpc.Identity, error) {
	cert, err := a.Issue(role, rank, nil)
	if err != nil {
		return nil, err
	}
	return rpc.NewIdentity(cert, a.pool)
}

// draft is a new key, and what all our certificates have in common. They begin an hour
// ago, since clocks of machines differ.
func draft(name string, life time.Duration) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("make a serial number: %w", err)
	}
	now := time.Now()
	return key, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life), BasicConstraintsValid: true,
	}, nil
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
