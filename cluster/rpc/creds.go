package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// creds makes TLS of an Identity, anew for each connection, so that changed files count
// from the next one on.
type creds struct {
	credentials.TransportCredentials // of no connection: the answers that are the same for all

	id   *Identity
	want *Who // of the server, at a client
}

func newCreds(id *Identity, want *Who) *creds {
	return &creds{credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13}), id, want}
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *creds) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.config()).ClientHandshake(ctx, authority, raw)
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *creds) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.config()).ServerHandshake(raw)
}

// Clone implements credentials.TransportCredentials.
func (c *creds) Clone() credentials.TransportCredentials { return newCreds(c.id, c.want) }

// config checks a peer's chain itself: what must fit is the SPIFFE id, not a host name.
func (c *creds) config() *tls.Config {
	p := c.id.current()
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{p.cert},
		// Both are replaced by VerifyConnection, which neither side can pass without a
		// certificate.
		InsecureSkipVerify: true,
		ClientAuth:         tls.RequireAnyClientCert,
		VerifyConnection:   func(s tls.ConnectionState) error { return c.verify(p, s) },
		// A resumed session would trust what was true of an earlier connection.
		SessionTicketsDisabled: true,
	}
}

// verify says why the peer of a connection is not one to talk to.
func (c *creds) verify(p proof, s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the peer has no certificate")
	}
	leaf := s.PeerCertificates[0]
	between := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	usage := x509.ExtKeyUsageClientAuth
	if c.want != nil {
		usage = x509.ExtKeyUsageServerAuth
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: p.pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		return fmt.Errorf("the peer's certificate: %w", err)
	}
	who, err := whoIn(leaf)
	if err != nil {
		return fmt.Errorf("the peer's certificate: %w", err)
	}
	if who.Run != p.who.Run {
		return fmt.Errorf("the peer's certificate is of run %s, ours of %s", who.Run, p.who.Run)
	}
	if c.want != nil {
		if err := who.fits(*c.want); err != nil {
			return fmt.Errorf("the peer's certificate: %w", err)
		}
	}
	return nil
}

// Caller is who has proved to call, in a handler; ok is false in plain text.
func Caller(ctx context.Context) (who Who, ok bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Who{}, false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return Who{}, false
	}
	who, err := whoIn(info.State.PeerCertificates[0])
	return who, err == nil
}

// Claim says why the caller in a handler cannot be claimed, which is what it says of
// itself: its certificate tells otherwise. In plain text everything is believed.
func Claim(ctx context.Context, claimed Who) error {
	if who, ok := Caller(ctx); ok {
		if err := who.fits(claimed); err != nil {
			return Refuse("the caller says that it is %v, but by its certificate %v", claimed, err)
		}
	}
	return nil
}
