package launch

import (
	"strings"
)

// SSH starts servers on other machines. It copies nothing: the program, the data and the
// certificates have to be there.
type SSH struct {
	// Command begins each call, such as ssh -o BatchMode=yes; the host and the remote
	// command follow.
	Command []string
	// Program is the path on the other machines, Dir the folder it runs in; "": that of
	// the login.
	Program, Dir string
}

// Processes are the ssh calls of the servers of spec. A server ends when its standard
// input does, which the connection carries: so none outlives it.
func (s *SSH) Processes(spec *Spec) []Server {
	var all []Server
	for _, p := range spec.Servers {
		remote := "exec " + Quote(append([]string{s.Program}, append(spec.Args(p), "--control-stdin")...))
		if s.Dir != "" {
			remote = "cd " + Quote([]string{s.Dir}) + " && " + remote
		}
		args := append(append([]string(nil), s.Command[1:]...), p.Host, remote)
		all = append(all, Server{Placed: p, Path: s.Command[0], Args: args, Wired: true})
	}
	return all
}

// Line is the call of a server as one would type it.
func (s *Server) Line() string { return Quote(append([]string{s.Path}, s.Args...)) }

// Quote writes words for a POSIX shell.
func Quote(words []string) string {
	var all []string
	for _, w := range words {
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%") != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		all = append(all, w)
	}
	return strings.Join(all, " ")
}
