package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Plan is what a deployment makes, or brings up to date.
type Plan struct {
	Region   string       `json:"region"`
	Function FunctionPlan `json:"function"`
	Role     RolePlan     `json:"role"`
	// Network is nil for a function outside any VPC.
	Network *NetworkPlan `json:"network,omitempty"`
	// Driver is the policy that the role of graph servers needs. It is not attached: that
	// role is not known here.
	Driver Policy `json:"graph_server_policy"`
	// Deployer is the policy of whoever deploys.
	Deployer Policy `json:"deployer_policy"`

	spec   Spec
	bundle *Bundle
}

// FunctionPlan is the function.
type FunctionPlan struct {
	Name       string            `json:"name"`
	Runtime    string            `json:"runtime"`
	Handler    string            `json:"handler"`
	Arch       string            `json:"architecture"`
	MemoryMB   int               `json:"memory_mb"`
	TimeoutS   int               `json:"timeout_seconds"`
	Env        map[string]string `json:"variables,omitempty"`
	Program    string            `json:"program"`
	ZipBytes   int               `json:"zip_bytes"`
	CodeSHA256 string            `json:"code_sha256"`
	Reserved   int               `json:"reserved_concurrency,omitempty"`
}

// RolePlan is the role that the function runs under.
type RolePlan struct {
	Name   string  `json:"name,omitempty"` // "": Given
	Given  string  `json:"arn,omitempty"`
	Trust  *Policy `json:"trust_policy,omitempty"`
	Policy Policy  `json:"policy"` // what a given one needs, too
}

// NetworkPlan attaches the function to a VPC.
type NetworkPlan struct {
	Subnets []string `json:"subnets"`
	// SecurityGroups are those named; or the one that Group has led to, once it is there.
	SecurityGroups []string   `json:"security_groups"`
	Group          *GroupPlan `json:"make_security_group,omitempty"`
	// Rules are what groups that are not ours have to let through. They are not set: such
	// groups belong to whoever runs the network.
	Rules []Rule `json:"rules"`
}

// Rule is one that a security group has to have.
type Rule struct {
	Group     string `json:"security_group"` // an id; or "graph-servers", or a name, where that is not known
	Direction string `json:"direction"`      // "in", "out"
	Peer      string `json:"peer"`           // the other group
	Protocol  string `json:"protocol"`       // "tcp"
	Port      int    `json:"port,omitempty"` // 0: not known
}

// unknownGroup stands for the graph servers' security group.
const unknownGroup = "graph-servers"

// ways are those from a group of workers to graph servers.
func (s *Spec) ways(workers string) (out, in Rule) {
	graph := cmp.Or(s.GraphGroup, unknownGroup)
	return Rule{workers, "out", graph, "tcp", s.Port}, Rule{graph, "in", workers, "tcp", s.Port}
}

// network is how the function is attached.
func (s *Spec) network() *NetworkPlan {
	n := &NetworkPlan{Subnets: s.Subnets, SecurityGroups: s.SecurityGroups}
	if s.makesGroup() {
		n.Group = &GroupPlan{Name: s.groupName(), Tag: groupTag + "=" + s.Function}
		n.SecurityGroups = []string{}
		out, in := s.ways(n.Group.Name)
		n.Group.Out, n.Rules = out, []Rule{in}
	}
	for _, g := range s.SecurityGroups {
		out, in := s.ways(g)
		n.Rules = append(n.Rules, out, in)
	}
	return n
}

// made puts the group's id in the places of its name.
func (n *NetworkPlan) made(id string) {
	n.SecurityGroups, n.Group.Out.Group = []string{id}, id
	for i := range n.Rules {
		n.Rules[i].Peer = id
	}
}

// Command is what sets a rule; "": not all of it is known.
func (r Rule) Command(region string) string {
	if r.Port == 0 || !groupID.MatchString(r.Group) || !groupID.MatchString(r.Peer) {
		return ""
	}
	verb := map[string]string{"in": "authorize-security-group-ingress", "out": "authorize-security-group-egress"}[r.Direction]
	return fmt.Sprintf("aws ec2 %s --region %s --group-id %s --ip-permissions 'IpProtocol=tcp,FromPort=%d,ToPort=%d,UserIdGroupPairs=[{GroupId=%s}]'",
		verb, region, r.Group, r.Port, r.Port, r.Peer)
}

const (
	runtimeName = "provided.al2023"
	entry       = "bootstrap"
	policyName  = "dorylus-worker"
	policyOwner = "Lambda workers of Dorylus"
)

// New plans a deployment, and packs the worker. It calls nobody.
func New(s Spec) (*Plan, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.withDefaults()
	b, err := Pack(s.Worker, s.Arch)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Region: s.Region, spec: s, bundle: b,
		Function: FunctionPlan{
			Name: s.Function, Runtime: runtimeName, Handler: entry, Arch: s.Arch, MemoryMB: s.MemoryMB, TimeoutS: int(s.Timeout.Seconds()),
			Env: s.Env, Program: s.Worker, ZipBytes: len(b.Zip), CodeSHA256: b.SHA256, Reserved: s.Reserved,
		},
	}
	if s.Role == "" {
		t := trust()
		p.Role.Name, p.Role.Trust = s.roleName(), &t
	} else {
		p.Role.Given = s.Role
	}
	if s.vpc() {
		p.Network = s.network()
	}
	partition, account := "aws", "ACCOUNT"
	if s.Role != "" {
		parts := strings.Split(s.Role, ":")
		partition, account = parts[1], parts[4]
	}
	p.locate(names{partition, s.Region, account})
	return p, nil
}

// locate writes the policies for an account.
func (p *Plan) locate(n names) {
	p.Role.Policy, p.Driver, p.Deployer = n.worker(&p.spec), n.driver(&p.spec), n.deployer(&p.spec)
}

// Write prints the plan for people.
func (p *Plan) Write(w io.Writer) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s "+format+"\n", append([]any{name}, args...)...)
	}
	f := &p.Function
	fmt.Fprintf(&b, "Function %s in %s\n", f.Name, p.Region)
	line("code", "%s as %s, %.1f MB zipped, sha256 %s", f.Program, entry, float64(f.ZipBytes)/1e6, f.CodeSHA256)
	line("runtime", "%s, %s", f.Runtime, f.Arch)
	line("memory", "%d MB", f.MemoryMB)
	line("timeout", "%d s", f.TimeoutS)
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		line("variable", "%s=%s", name, f.Env[name])
	}
	reserved := "shared with the account's other functions, unless some is reserved already"
	if f.Reserved > 0 {
		reserved = fmt.Sprintf("%d reserved, and no more", f.Reserved)
	}
	line("concurrency", "%s", reserved)
	p.writeNetwork(&b, line)
	if p.Role.Name != "" {
		fmt.Fprintf(&b, "\nRole %s, which Lambda alone may take on:\n%s\nmay\n%s", p.Role.Name, text(*p.Role.Trust), text(p.Role.Policy))
	} else {
		fmt.Fprintf(&b, "\nRole %s, which is not changed, has to allow\n%s", p.Role.Given, text(p.Role.Policy))
	}
	fmt.Fprintf(&b, "\nThe role of the graph servers needs\n%s", text(p.Driver))
	fmt.Fprintf(&b, "\nWhoever deploys needs\n%s", text(p.Deployer))
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Plan) writeNetwork(b *strings.Builder, line func(name, format string, args ...any)) {
	n := p.Network
	if n == nil {
		line("network", "outside any VPC: graph servers need an address that Lambda reaches over the internet")
		return
	}
	line("network", "subnets %s", strings.Join(n.Subnets, ", "))
	if g := n.Group; g != nil {
		line("", "security group %s, with the tag %s: made where it is not there; lets out %s at port %d to %s, and nothing else", g.Name, g.Tag, g.Out.Protocol, g.Out.Port, g.Out.Peer)
	} else {
		line("", "security groups %s", strings.Join(n.SecurityGroups, ", "))
	}
	line("", "graph servers reach the Lambda API by a NAT, or an interface endpoint of com.amazonaws.%s.lambda", p.Region)
	fmt.Fprint(b, "\nSecurity groups have to let through, and are not changed\n")
	for _, r := range n.Rules {
		port := "the port for workers"
		if r.Port > 0 {
			port = fmt.Sprintf("port %d", r.Port)
		}
		way := map[string]string{"in": "from", "out": "to"}[r.Direction]
		line(r.Direction, "%s: %s at %s %s %s", r.Group, r.Protocol, port, way, r.Peer)
		if r.Peer == p.spec.groupName() {
			fmt.Fprintln(b, "    whose id, and with it the command, is told when it is made")
		}
		if c := r.Command(p.Region); c != "" {
			fmt.Fprintf(b, "    %s\n", c)
		}
	}
}

// text is a policy as IAM reads it.
func text(p Policy) string {
	data, err := json.MarshalIndent(p, "  ", "  ")
	if err != nil {
		return err.Error() // strings and maps of them always can
	}
	return "  " + string(data) + "\n"
}
