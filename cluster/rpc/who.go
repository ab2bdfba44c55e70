package rpc

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Role is what a process does in a run.
type Role string

// The roles.
const (
	Graph Role = "graph"
	Param Role = "param"
)

// AnyRank is the rank in a certificate that all processes of a role share.
const AnyRank = -1

const scheme = "spiffe"

// Who names a process of a run.
type Who struct {
	// Run is the trust domain and path that all processes of a run have in common, such
	// as "dorylus.local/dev". Empty where nobody has proved anything: in plain text.
	Run  string
	Role Role
	Rank int // AnyRank where it does not say
}

// String is how people call it: "graph server 2".
func (w Who) String() string {
	name := string(w.Role) + " process"
	switch w.Role {
	case Graph:
		name = "graph server"
	case Param:
		name = "parameter server"
	}
	if w.Rank < 0 {
		return name + " of any rank"
	}
	return name + " " + strconv.Itoa(w.Rank)
}

// URI is w as a SPIFFE id.
func (w Who) URI() (*url.URL, error) {
	domain, path, _ := strings.Cut(w.Run, "/")
	text := scheme + "://" + domain + "/"
	if path != "" {
		text += path + "/"
	}
	text += string(w.Role)
	if w.Rank != AnyRank {
		text += "/" + strconv.Itoa(w.Rank)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("name %v of run %q: %w", w, w.Run, err)
	}
	if back, err := ParseWho(u); err != nil || back != w {
		return nil, fmt.Errorf("name %v of run %q: %s is no name of it; a run is letters, digits and . - _ /", w, w.Run, text)
	}
	return u, nil
}

// ParseWho reads a SPIFFE id.
func ParseWho(u *url.URL) (Who, error) {
	bad := func(why string) (Who, error) {
		return Who{}, fmt.Errorf("read the identity %s: %s; want spiffe://RUN/ROLE/RANK", u, why)
	}
	if u.Scheme != scheme || u.Host == "" || u.User != nil || u.Port() != "" || u.RawQuery != "" || u.Fragment != "" {
		return bad("it is no SPIFFE id")
	}
	if strings.Trim(u.Host+u.Path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/") != "" {
		return bad("it has characters that a SPIFFE id has not")
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	w := Who{Rank: AnyRank}
	if last := parts[len(parts)-1]; last != "" && strings.Trim(last, "0123456789") == "" {
		n, err := strconv.ParseUint(last, 10, 31)
		if err != nil || strconv.FormatUint(n, 10) != last {
			return bad("rank " + last + " is no number of ours")
		}
		w.Rank, parts = int(n), parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return bad("it has no role")
	}
	w.Role, parts = Role(parts[len(parts)-1]), parts[:len(parts)-1]
	if w.Role != Graph && w.Role != Param {
		return bad(fmt.Sprintf("role %q is neither %s nor %s", w.Role, Graph, Param))
	}
	w.Run = u.Host
	for _, p := range parts {
		if p == "" || p == "." || p == ".." {
			return bad("its path has an empty part")
		}
		w.Run += "/" + p
	}
	return w, nil
}

// fits says whether a process that has proved to be w may stand for want.
func (w Who) fits(want Who) error {
	switch {
	case w.Role != want.Role:
		return fmt.Errorf("it is %v, want %v", w, want)
	case w.Rank >= 0 && want.Rank >= 0 && w.Rank != want.Rank:
		return fmt.Errorf("it is %v, want %v; is the list of addresses in the order of the ranks?", w, want)
	}
	return nil
}
