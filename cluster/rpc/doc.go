// Package rpc is how the servers of a run talk: gRPC between processes that have proved
// by certificate which role and rank they have.
//
// A server is Listen, Handle for each Service, Serve; a client is Dial, then Call or
// Open. All carry a Message: a kind, a small head and parts of bytes, in a versioned
// frame with hard limits. TLS 1.3 with certificates on both sides is the rule; plain
// text is for loopback addresses, and only where it was asked for (Plaintext).
//
// What a peer may do follows from the SPIFFE id in its certificate,
//
//	spiffe://RUN/ROLE/RANK    or, for any rank of a role,    spiffe://RUN/ROLE
//
// where RUN is a trust domain and maybe a path below it, the same for all of a run.
// Host names in certificates are not looked at: addresses move, identities don't.
package rpc
