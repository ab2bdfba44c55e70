package deploy

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// attached is a spec whose workers need a security group, and a stub that has its
// subnets.
func attached(t *testing.T) (*stub, Spec) {
	aws := serveAWS(t)
	aws.vpcs = map[string]string{"subnet-0a": "vpc-0d", "subnet-0b": "vpc-0d", "subnet-0c": "vpc-0e"}
	s := spec(t)
	s.Role = "arn:aws:iam::123456789012:role/ours"
	s.Subnets, s.GraphGroup, s.Port = []string{"subnet-0a", "subnet-0b"}, "sg-0cafe", 7100
	return aws, s
}

// A group is made, tagged, and lets out to graph servers only; the function gets it. The
// second time nothing changes, and another port replaces the rule.
func TestSecurityGroup(t *testing.T) {
	aws, s := attached(t)
	res, steps := apply(t, aws.open(t), plan(t, s))
	wantCalls(t, aws, "DescribeSubnets", "DescribeSecurityGroups", "CreateSecurityGroup", "DescribeSecurityGroups", "RevokeSecurityGroupEgress",
		"AuthorizeSecurityGroupEgress", "GetFunctionConfiguration", "CreateFunction", "GetFunctionConfiguration")
	want := stubGroup{"sg-0beef", "dorylus-workers-dorylus-lambda", "vpc-0d", "dorylus-function=dorylus-lambda", []stubRule{{"tcp", "7100", "sg-0cafe", ""}}}
	if !reflect.DeepEqual(*aws.group, want) {
		t.Errorf("the group is %+v, want %+v", *aws.group, want)
	}
	vpc := map[string]any{"SubnetIds": []any{"subnet-0a", "subnet-0b"}, "SecurityGroupIds": []any{"sg-0beef"}}
	if !reflect.DeepEqual(aws.fn["VpcConfig"], vpc) {
		t.Errorf("the function has %v, want %v", aws.fn["VpcConfig"], vpc)
	}
	if !slices.Contains(steps, "security group dorylus-workers-dorylus-lambda: made in vpc-0d as sg-0beef") || !slices.Contains(steps, "security group sg-0beef: lets out tcp at port 7100 to sg-0cafe, and nothing else") {
		t.Errorf("steps %q", steps)
	}
	if left := res.Network.Rules; len(left) != 1 || left[0] != (Rule{"sg-0cafe", "in", "sg-0beef", "tcp", 7100}) || !strings.Contains(left[0].Command("eu-west-1"), "authorize-security-group-ingress --region eu-west-1 --group-id sg-0cafe ") {
		t.Errorf("rules that are left: %+v", left)
	}

	_, steps = apply(t, aws.open(t), plan(t, s))
	wantCalls(t, aws, "DescribeSubnets", "DescribeSecurityGroups", "GetFunctionConfiguration")
	if !slices.Contains(steps, "security group sg-0beef: its rule is the same") || !slices.Contains(steps, "function dorylus-lambda: its configuration is the same") {
		t.Errorf("again: %q", steps)
	}

	s.Port = 7200
	aws.group.out = append(aws.group.out, everything) // somebody has let everything out
	apply(t, aws.open(t), plan(t, s))
	if want := []stubRule{{"tcp", "7200", "sg-0cafe", ""}}; !slices.Equal(aws.group.out, want) {
		t.Errorf("rules %+v, want %+v", aws.group.out, want)
	}
}

// Groups that are named are left alone: EC2 is not asked.
func TestGivenSecurityGroups(t *testing.T) {
	aws, s := attached(t)
	s.SecurityGroups = []string{"sg-01", "sg-02"}
	res, _ := apply(t, aws.open(t), plan(t, s))
	wantCalls(t, aws, "GetFunctionConfiguration", "CreateFunction", "GetFunctionConfiguration")
	if len(res.Network.Rules) != 4 || res.Network.Group != nil {
		t.Errorf("the network is %+v", res.Network)
	}
	for _, x := range res.Network.Rules {
		if x.Command("eu-west-1") == "" {
			t.Errorf("no command for %+v", x)
		}
	}
}

func TestSecurityGroupErrors(t *testing.T) {
	for _, x := range []struct {
		name  string
		setUp func(*stub, *Spec)
		want  []string
	}{
		{"two VPCs", func(_ *stub, s *Spec) { s.Subnets = []string{"subnet-0a", "subnet-0c"} }, []string{"are in vpc-0d and vpc-0e", "one VPC"}},
		{"no VPC", func(s *stub, _ *Spec) { s.vpcs = nil }, []string{"knows no VPC of the subnets subnet-0a, subnet-0b"}},
		{"another's group", func(s *stub, _ *Spec) {
			s.group = &stubGroup{"sg-0a", "dorylus-workers-dorylus-lambda", "vpc-0d", "owner=me", nil}
		}, []string{"security group sg-0a is called dorylus-workers-dorylus-lambda, but was not made for function dorylus-lambda", "rename it"}},
		{"may not make it", func(s *stub, _ *Spec) {
			s.refuse["CreateSecurityGroup"] = "UnauthorizedOperation: You are not authorized"
		}, []string{"lack ec2:CreateSecurityGroup", "--dry-run prints the policy"}},
		{"may not narrow it", func(s *stub, _ *Spec) {
			s.refuse["RevokeSecurityGroupEgress"] = "UnauthorizedOperation: You are not authorized"
		}, []string{"lack ec2:RevokeSecurityGroupEgress"}},
		{"no such subnet", func(s *stub, _ *Spec) {
			s.refuse["DescribeSubnets"] = "InvalidSubnetID.NotFound: The subnet ID 'subnet-0a' does not exist"
		}, []string{"The subnet ID 'subnet-0a' does not exist"}},
	} {
		aws, s := attached(t)
		x.setUp(aws, &s)
		_, err := aws.open(t).Apply(t.Context(), plan(t, s))
		for _, w := range x.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q in it", x.name, err, w)
			}
		}
		if aws.fn != nil {
			t.Errorf("%s: the function was made all the same", x.name)
		}
	}
	_, s := attached(t)
	for name, change := range map[string]func(*Spec){"no port": func(s *Spec) { s.Port = 0 }, "no graph group": func(s *Spec) { s.GraphGroup = "" }} {
		bad := s
		change(&bad)
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), "subnets without a security group") || !strings.Contains(err.Error(), "and one is made") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A dry run shows the group, what is left to set, and the rights that making it takes.
func TestSecurityGroupIsPlanned(t *testing.T) {
	_, s := attached(t)
	p := plan(t, s)
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"security group dorylus-workers-dorylus-lambda, with the tag dorylus-function=dorylus-lambda: made where it is not there; lets out tcp at port 7100 to sg-0cafe, and nothing else",
		"sg-0cafe: tcp at port 7100 from dorylus-workers-dorylus-lambda", "the command, is told when it is made",
		`"arn:aws:ec2:eu-west-1:123456789012:security-group/*"`, `"aws:RequestTag/dorylus-function": "dorylus-lambda"`, `"ec2:CreateAction": "CreateSecurityGroup"`,
		`"ec2:RevokeSecurityGroupEgress"`, `"aws:ResourceTag/dorylus-function": "dorylus-lambda"`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "aws ec2") {
		t.Errorf("a command without an id is printed:\n%s", b.String())
	}
	data, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(data), `"make_security_group":{"name":"dorylus-workers-dorylus-lambda"`) {
		t.Errorf("JSON %s: %v", data, err)
	}
	s.SecurityGroups = []string{"sg-01"}
	for _, x := range plan(t, s).Deployer.Statement {
		if slices.Contains(x.Action, "ec2:CreateSecurityGroup") {
			t.Errorf("whoever names a group may make one: %+v", x)
		}
	}
}
