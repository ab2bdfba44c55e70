package deploy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// stubGroup is a security group of the stub.
type stubGroup struct {
	id, name, vpc, tag string
	out                []stubRule
}

// stubRule is a way out: to a group, or to a range of addresses.
type stubRule struct{ protocol, port, group, cidr string }

// everything is the rule that AWS gives to a new group.
var everything = stubRule{protocol: "-1", cidr: "0.0.0.0/0"}

func (r stubRule) xml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<item><ipProtocol>%s</ipProtocol>", r.protocol)
	if r.port != "" {
		fmt.Fprintf(&b, "<fromPort>%[1]s</fromPort><toPort>%[1]s</toPort>", r.port)
	}
	if r.group != "" {
		fmt.Fprintf(&b, "<groups><item><groupId>%s</groupId><userId>%s</userId></item></groups>", r.group, account)
	}
	if r.cidr != "" {
		fmt.Fprintf(&b, "<ipRanges><item><cidrIp>%s</cidrIp></item></ipRanges>", r.cidr)
	}
	return b.String() + "</item>"
}

// rulesOf are the rules of a request.
func (s *stub) rulesOf(form url.Values) []stubRule {
	var all []stubRule
	for i := 1; ; i++ {
		at := fmt.Sprintf("IpPermissions.%d.", i)
		if form.Get(at+"IpProtocol") == "" {
			return all
		}
		if form.Get(at+"FromPort") != form.Get(at+"ToPort") {
			s.t.Errorf("a rule has ports %s to %s", form.Get(at+"FromPort"), form.Get(at+"ToPort"))
		}
		all = append(all, stubRule{form.Get(at + "IpProtocol"), form.Get(at + "FromPort"), form.Get(at + "Groups.1.GroupId"), form.Get(at + "IpRanges.1.CidrIp")})
	}
}

// ec2 answers in the XML of EC2.
func (s *stub) ec2(w http.ResponseWriter, form url.Values) {
	op := form.Get("Action")
	w.Header().Set("Content-Type", "text/xml")
	fail := func(code, message string) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r</RequestID></Response>`, code, message)
	}
	if code, message, no := s.denied(op); no {
		fail(code, message)
		return
	}
	g := s.group
	var body strings.Builder
	switch op {
	case "DescribeSubnets":
		for i := 1; form.Get(fmt.Sprintf("SubnetId.%d", i)) != ""; i++ {
			id := form.Get(fmt.Sprintf("SubnetId.%d", i))
			fmt.Fprintf(&body, "<item><subnetId>%s</subnetId><vpcId>%s</vpcId></item>", id, s.vpcs[id])
		}
		fmt.Fprintf(w, "<%[1]sResponse><requestId>r</requestId><subnetSet>%[2]s</subnetSet></%[1]sResponse>", op, body.String())
		return
	case "CreateSecurityGroup":
		tag := form.Get("TagSpecification.1.Tag.1.Key") + "=" + form.Get("TagSpecification.1.Tag.1.Value")
		s.group = &stubGroup{"sg-0beef", form.Get("GroupName"), form.Get("VpcId"), tag, []stubRule{everything}}
		s.unknown = 2
		fmt.Fprintf(&body, "<groupId>%s</groupId>", s.group.id)
	case "DescribeSecurityGroups":
		byID := form.Get("GroupId.1")
		if byID != "" && s.unknown > 0 {
			s.unknown--
			fail("InvalidGroup.NotFound", "The security group '"+byID+"' does not exist")
			return
		}
		if g != nil && (byID == g.id || byID == "" && form.Get("Filter.1.Value.1") == g.vpc && form.Get("Filter.2.Value.1") == g.name) {
			key, value, _ := strings.Cut(g.tag, "=")
			fmt.Fprintf(&body, "<item><groupId>%s</groupId><groupName>%s</groupName><tagSet><item><key>%s</key><value>%s</value></item></tagSet><ipPermissionsEgress>", g.id, g.name, key, value)
			for _, r := range g.out {
				body.WriteString(r.xml())
			}
			body.WriteString("</ipPermissionsEgress></item>")
		}
		fmt.Fprintf(w, "<%[1]sResponse><requestId>r</requestId><securityGroupInfo>%[2]s</securityGroupInfo></%[1]sResponse>", op, body.String())
		return
	case "AuthorizeSecurityGroupEgress":
		g.out = append(g.out, s.rulesOf(form)...)
	case "RevokeSecurityGroupEgress":
		for _, r := range s.rulesOf(form) {
			kept := g.out[:0]
			for _, x := range g.out {
				if x != r {
					kept = append(kept, x)
				}
			}
			if len(kept) == len(g.out) {
				s.t.Errorf("rule %+v is revoked, and is not there", r)
			}
			g.out = kept
		}
	default:
		s.t.Errorf("EC2 was asked for %s", op)
	}
	fmt.Fprintf(w, "<%[1]sResponse><requestId>r</requestId><return>true</return>%[2]s</%[1]sResponse>", op, body.String())
}
