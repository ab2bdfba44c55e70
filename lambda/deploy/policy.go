package deploy

import "fmt"

// Policy is a document of IAM.
type Policy struct {
	Version   string
	Statement []Statement
}

// Statement is one rule of a Policy.
type Statement struct {
	Sid       string            `json:",omitempty"`
	Effect    string            // "Allow", "Deny"
	Principal map[string]string `json:",omitempty"`
	Action    []string
	Resource  []string                     `json:",omitempty"`
	Condition map[string]map[string]string `json:",omitempty"`
}

func policy(s ...Statement) Policy { return Policy{Version: "2012-10-17", Statement: s} }

func allow(sid string, resources []string, actions ...string) Statement {
	return Statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resources}
}

// names are the ARNs of what is deployed. Account is "ACCOUNT" until AWS has told it.
type names struct{ partition, region, account string }

func (n names) arn(service, region, rest string) string {
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", n.partition, service, region, n.account, rest)
}

func (n names) function(s *Spec) string { return n.arn("lambda", n.region, "function:"+s.Function) }
func (n names) role(s *Spec) string     { return n.arn("iam", "", "role/"+s.roleName()) }

// trust lets Lambda, and nobody else, run functions under the role.
func trust() Policy {
	return policy(Statement{Effect: "Allow", Principal: map[string]string{"Service": "lambda.amazonaws.com"}, Action: []string{"sts:AssumeRole"}})
}

// worker is what the function may do.
func (n names) worker(s *Spec) Policy {
	group := n.arn("logs", n.region, "log-group:/aws/lambda/"+s.Function)
	p := policy(allow("Log", []string{group, group + ":*"}, "logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"))
	if s.vpc() {
		// Lambda itself attaches the function; describing cannot be narrowed down, and
		// Lambda refuses a role that may not delete any interface.
		attach := []string{"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets",
			"ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"}
		deny := Statement{Sid: "NotTheWorkersCode", Effect: "Deny", Action: attach, Resource: []string{"*"},
			Condition: map[string]map[string]string{"ArnEquals": {"lambda:SourceFunctionArn": n.function(s)}}}
		p.Statement = append(p.Statement, allow("Attach", []string{"*"}, attach...), deny)
	}
	return p
}

// driver is what graph servers may do.
func (n names) driver(s *Spec) Policy {
	return policy(allow("Invoke", []string{n.function(s)}, "lambda:InvokeFunction"))
}

// deployer is what this package does.
func (n names) deployer(s *Spec) Policy {
	actions := []string{"lambda:GetFunctionConfiguration", "lambda:CreateFunction", "lambda:UpdateFunctionCode", "lambda:UpdateFunctionConfiguration"}
	if s.Reserved > 0 {
		actions = append(actions, "lambda:PutFunctionConcurrency")
	}
	role := s.Role
	if role == "" {
		role = n.role(s)
	}
	pass := allow("HandOver", []string{role}, "iam:PassRole")
	pass.Condition = map[string]map[string]string{"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
	p := policy(allow("Function", []string{n.function(s)}, actions...), pass)
	if s.Role == "" {
		p.Statement = append(p.Statement, allow("Role", []string{role}, "iam:GetRole", "iam:CreateRole", "iam:PutRolePolicy"))
	}
	if s.vpc() {
		p.Statement = append(p.Statement, allow("See", []string{"*"}, "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"))
	}
	if s.makesGroup() {
		p.Statement = append(p.Statement, n.ownGroup(s)...)
	}
	return p
}

// ownGroup is what making a security group takes, and keeping its rule: of groups that
// carry the function's tag only.
func (n names) ownGroup(s *Spec) []Statement {
	groups := []string{n.arn("ec2", n.region, "security-group/*")}
	under := func(what Statement, key, value string) Statement {
		what.Condition = map[string]map[string]string{"StringEquals": {key: value}}
		return what
	}
	return []Statement{
		under(allow("MakeGroup", groups, "ec2:CreateSecurityGroup"), "aws:RequestTag/"+groupTag, s.Function),
		allow("MakeGroupIn", []string{n.arn("ec2", n.region, "vpc/*")}, "ec2:CreateSecurityGroup"),
		under(allow("TagGroup", groups, "ec2:CreateTags"), "ec2:CreateAction", "CreateSecurityGroup"),
		under(allow("NarrowGroup", groups, "ec2:AuthorizeSecurityGroupEgress", "ec2:RevokeSecurityGroupEgress"), "aws:ResourceTag/"+groupTag, s.Function),
	}
}
