package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// groupTag marks the security group that belongs to a function, whose name is the value.
const groupTag = "dorylus-function"

// GroupPlan is the workers' security group where none is named: it lets them reach the
// graph servers' group at their port, and nothing and nobody else.
type GroupPlan struct {
	Name string `json:"name"`
	Tag  string `json:"tag"` // "KEY=VALUE"
	Out  Rule   `json:"rule"`
}

func (s *Spec) groupName() string { return "dorylus-workers-" + s.Function }

// group is the id of the planned group, which is made where there is none and loses the
// ways out that are not planned.
func (a *Account) group(ctx context.Context, p *Plan) (id string, err error) {
	g := p.Network.Group
	vpc, err := a.vpc(ctx, p.Network.Subnets)
	if err != nil {
		return "", err
	}
	found, err := a.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{
		{Name: aws.String("vpc-id"), Values: []string{vpc}}, {Name: aws.String("group-name"), Values: []string{g.Name}},
	}})
	if err != nil {
		return "", err
	}
	if len(found.SecurityGroups) == 0 {
		if id, err = a.makeGroup(ctx, p, vpc); err != nil {
			return "", err
		}
	} else {
		id = aws.ToString(found.SecurityGroups[0].GroupId)
		if !tagged(found.SecurityGroups[0].Tags, p.Function.Name) {
			return "", fmt.Errorf("security group %s is called %s, but was not made for function %s (it lacks the tag %s): rename it, or name the workers' group yourself",
				id, g.Name, p.Function.Name, g.Tag)
		}
	}
	return id, a.narrow(ctx, id, g.Out)
}

// vpc is where all the subnets are.
func (a *Account) vpc(ctx context.Context, subnets []string) (string, error) {
	found, err := a.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: subnets})
	if err != nil {
		return "", err
	}
	vpc := ""
	for _, s := range found.Subnets {
		if id := aws.ToString(s.VpcId); vpc == "" {
			vpc = id
		} else if id != vpc {
			return "", fmt.Errorf("subnets %s are in %s and %s: a function is attached to one VPC", strings.Join(subnets, ", "), vpc, id)
		}
	}
	if vpc == "" {
		return "", fmt.Errorf("AWS knows no VPC of the subnets %s", strings.Join(subnets, ", "))
	}
	return vpc, nil
}

func tagged(tags []types.Tag, function string) bool {
	for _, t := range tags {
		if aws.ToString(t.Key) == groupTag && aws.ToString(t.Value) == function {
			return true
		}
	}
	return false
}

// makeGroup makes the group, and waits until AWS knows it everywhere.
func (a *Account) makeGroup(ctx context.Context, p *Plan, vpc string) (id string, err error) {
	g := p.Network.Group
	made, err := a.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: &g.Name, Description: aws.String(policyOwner), VpcId: &vpc,
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeSecurityGroup, Tags: []types.Tag{{Key: aws.String(groupTag), Value: &p.Function.Name}},
		}},
	})
	if err != nil {
		return "", err
	}
	id = aws.ToString(made.GroupId)
	a.Report(fmt.Sprintf("security group %s: made in %s as %s", g.Name, vpc, id))
	return id, nil
}

// narrow makes out the only way out of a group: AWS lets everything out of a new one.
func (a *Account) narrow(ctx context.Context, id string, out Rule) error {
	var has []types.IpPermission
	err := a.again(ctx, "find security group "+id, func() (bool, error) {
		found, err := a.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
		if is(err, "InvalidGroup.NotFound") { // a new one is not known everywhere yet
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for _, g := range found.SecurityGroups {
			has = g.IpPermissionsEgress
		}
		return len(found.SecurityGroups) > 0, nil
	})
	if err != nil {
		return err
	}
	want := types.IpPermission{
		IpProtocol: &out.Protocol, FromPort: aws.Int32(int32(out.Port)), ToPort: aws.Int32(int32(out.Port)),
		UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &out.Peer}},
	}
	there := false
	var others []types.IpPermission
	for _, rule := range has {
		if only(rule, want) {
			there = true
		} else {
			others = append(others, rule)
		}
	}
	if len(others) > 0 {
		if _, err := a.ec2.RevokeSecurityGroupEgress(ctx, &ec2.RevokeSecurityGroupEgressInput{GroupId: &id, IpPermissions: others}); err != nil {
			return err
		}
	}
	if there && len(others) == 0 {
		a.Report(fmt.Sprintf("security group %s: its rule is the same", id))
		return nil
	}
	if !there {
		if _, err := a.ec2.AuthorizeSecurityGroupEgress(ctx, &ec2.AuthorizeSecurityGroupEgressInput{GroupId: &id, IpPermissions: []types.IpPermission{want}}); err != nil {
			return err
		}
	}
	a.Report(fmt.Sprintf("security group %s: lets out %s at port %d to %s, and nothing else", id, out.Protocol, out.Port, out.Peer))
	return nil
}

// only says that a rule of AWS lets through what want does, and no more.
func only(rule, want types.IpPermission) bool {
	return aws.ToString(rule.IpProtocol) == aws.ToString(want.IpProtocol) &&
		aws.ToInt32(rule.FromPort) == aws.ToInt32(want.FromPort) && aws.ToInt32(rule.ToPort) == aws.ToInt32(want.ToPort) &&
		len(rule.IpRanges)+len(rule.Ipv6Ranges)+len(rule.PrefixListIds) == 0 && len(rule.UserIdGroupPairs) == 1 &&
		aws.ToString(rule.UserIdGroupPairs[0].GroupId) == aws.ToString(want.UserIdGroupPairs[0].GroupId)
}
