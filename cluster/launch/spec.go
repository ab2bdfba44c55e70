package launch

import (
	"fmt"
	"strings"

	"dorylus/cluster/member"
)

// Spec says what all servers of a run are told.
type Spec struct {
	Job     string
	Servers []member.Placed
	// Serve is the command of graph servers; "" is graph.
	Serve string
	// Common are flags of every server, Train those of the graph servers besides.
	Common, Train []string
}

// Args are the arguments of a server: "serve graph --rank=0 ...".
func (s *Spec) Args(p member.Placed) []string {
	command := string(p.Role)
	if p.Role == member.Graph && s.Serve != "" {
		command = s.Serve
	}
	args := []string{"serve", command, "--rank=" + fmt.Sprint(p.Rank), "--graphs=" + strings.Join(s.addresses(member.Graph), ",")}
	if params := s.addresses(member.Param); len(params) > 0 {
		args = append(args, "--params="+strings.Join(params, ","))
	}
	args = append(append(args, "--job="+s.Job), s.Common...)
	if p.Role == member.Graph {
		args = append(args, s.Train...)
	}
	return args
}

func (s *Spec) addresses(r member.Role) []string {
	var all []string
	for _, p := range s.Servers {
		if p.Role == r {
			all = append(all, p.Address)
		}
	}
	return all
}
