package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

var rewrite = flag.Bool("rewrite", false, "write the plan that is printed into testdata")

func spec(t *testing.T) Spec {
	return Spec{Worker: program(t, amd64, "code"), Region: "eu-west-1"}
}

func plan(t *testing.T, s Spec) *Plan {
	t.Helper()
	p, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// apply deploys and returns the steps that were reported.
func apply(t *testing.T, a *Account, p *Plan) (*Result, []string) {
	t.Helper()
	var steps []string
	a.Report = func(s string) { steps = append(steps, s) }
	res, err := a.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return res, steps
}

func wantCalls(t *testing.T, s *stub, want ...string) {
	t.Helper()
	if got := slices.Compact(slices.Clone(s.calls)); !slices.Equal(got, want) {
		t.Errorf("called %q\nwant   %q", got, want)
	}
	s.calls = nil
}

// A first deployment makes role and function, a second one changes nothing, a third
// one with another worker and another size changes those.
func TestCreateThenUpdate(t *testing.T) {
	aws := serveAWS(t)
	aws.young = 3
	s := spec(t)
	s.Env, s.Reserved = map[string]string{"GODEBUG": "x=1"}, 200
	s.Subnets, s.SecurityGroups = []string{"subnet-0a", "subnet-0b"}, []string{"sg-01"}
	res, steps := apply(t, aws.open(t), plan(t, s))
	wantCalls(t, aws, "GetRole", "CreateRole", "PutRolePolicy", "GetFunctionConfiguration", "CreateFunction", "GetFunctionConfiguration", "PutFunctionConcurrency")
	const fn = "arn:aws:lambda:eu-west-1:123456789012:function:dorylus-lambda"
	if res.Function != fn || res.Role != "arn:aws:iam::123456789012:role/dorylus-lambda-worker-role" || !res.Created {
		t.Errorf("deployed %+v", res)
	}
	if r := res.Driver.Statement; len(r) != 1 || !slices.Equal(r[0].Action, []string{"lambda:InvokeFunction"}) || !slices.Equal(r[0].Resource, []string{fn}) {
		t.Errorf("graph servers get %+v", r)
	}
	if want := []string{"role dorylus-lambda-worker-role: made", "role dorylus-lambda-worker-role: policy dorylus-worker set", "function dorylus-lambda: made", "function dorylus-lambda: 200 concurrent invocations reserved"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q", steps)
	}
	if code, _ := os.ReadFile(s.Worker); len(aws.files) != 1 || !bytes.Equal(aws.files["bootstrap"], code) || aws.reserved != 200 {
		t.Errorf("the code has %d files, bootstrap %q; %d are reserved", len(aws.files), aws.files["bootstrap"], aws.reserved)
	}
	want := map[string]any{
		"Runtime": "provided.al2023", "Handler": "bootstrap", "MemorySize": 1769.0, "Timeout": 900.0, "Role": res.Role,
		"Architectures": []any{"x86_64"}, "PackageType": "Zip", "Environment": map[string]any{"Variables": map[string]any{"GODEBUG": "x=1"}},
		"VpcConfig": map[string]any{"SubnetIds": []any{"subnet-0a", "subnet-0b"}, "SecurityGroupIds": []any{"sg-01"}},
	}
	for k, v := range want {
		if !reflect.DeepEqual(aws.fn[k], v) {
			t.Errorf("the function has %s %v, want %v", k, aws.fn[k], v)
		}
	}
	for _, w := range []string{`"lambda:SourceFunctionArn":"` + fn + `"`, `"arn:aws:logs:eu-west-1:123456789012:log-group:/aws/lambda/dorylus-lambda:*"`} {
		if !strings.Contains(aws.role.policy, w) {
			t.Errorf("%s is not in the worker's policy %s", w, aws.role.policy)
		}
	}
	if !strings.Contains(aws.role.trust, `"Service":"lambda.amazonaws.com"`) {
		t.Errorf("the role trusts %s", aws.role.trust)
	}

	res, steps = apply(t, aws.open(t), plan(t, s))
	wantCalls(t, aws, "GetRole", "PutRolePolicy", "GetFunctionConfiguration", "PutFunctionConcurrency")
	if res.Created || !slices.Contains(steps, "function dorylus-lambda: its code is the same") || !slices.Contains(steps, "function dorylus-lambda: its configuration is the same") {
		t.Errorf("again: %+v, %q", res, steps)
	}

	s.Worker, s.Arch, s.MemoryMB, s.Timeout = program(t, arm64, "newer"), "arm64", 3008, time.Minute
	s.Env, s.Subnets, s.SecurityGroups, s.Reserved = nil, nil, nil, 0
	_, steps = apply(t, aws.open(t), plan(t, s))
	wantCalls(t, aws, "GetRole", "PutRolePolicy", "GetFunctionConfiguration", "UpdateFunctionCode", "GetFunctionConfiguration", "UpdateFunctionConfiguration", "GetFunctionConfiguration")
	want = map[string]any{
		"MemorySize": 3008.0, "Timeout": 60.0, "Architectures": []any{"arm64"}, "Environment": map[string]any{"Variables": map[string]any{}},
		"VpcConfig": map[string]any{"SubnetIds": []any{}, "SecurityGroupIds": []any{}},
	}
	for k, v := range want {
		if !reflect.DeepEqual(aws.fn[k], v) {
			t.Errorf("after the update the function has %s %v, want %v", k, aws.fn[k], v)
		}
	}
	if !bytes.HasSuffix(aws.files["bootstrap"], []byte("newer")) || !slices.Contains(steps, "function dorylus-lambda: new configuration") || strings.Contains(aws.role.policy, "ec2:") {
		t.Errorf("after the update: code %q, steps %q, rights %s", aws.files["bootstrap"], steps, aws.role.policy)
	}
}

// A role that is given is used as it is: IAM is not asked.
func TestGivenRole(t *testing.T) {
	aws := serveAWS(t)
	s := spec(t)
	s.Role = "arn:aws:iam::123456789012:role/ours"
	res, _ := apply(t, aws.open(t), plan(t, s))
	wantCalls(t, aws, "GetFunctionConfiguration", "CreateFunction", "GetFunctionConfiguration")
	if res.Role != s.Role || aws.fn["Role"] != s.Role {
		t.Errorf("role %s, the function's is %v", res.Role, aws.fn["Role"])
	}
}

func TestErrors(t *testing.T) {
	for _, x := range []struct {
		name  string
		setUp func(*stub)
		want  []string
	}{
		{"role denied", func(s *stub) { s.refuse["CreateRole"] = "AccessDenied: User: me is not authorized" },
			[]string{"deploy the worker: ", "User: me is not authorized", "lack iam:CreateRole", "--dry-run prints the policy"}},
		{"function denied", func(s *stub) { s.refuse["CreateFunction"] = "AccessDeniedException: no" }, []string{"lack lambda:CreateFunction"}},
		{"stale credentials", func(s *stub) {
			s.refuse["GetRole"] = "ExpiredToken: The security token included in the request is expired"
		},
			[]string{"does not accept these credentials", "AWS_PROFILE"}},
		{"wrong credentials", func(s *stub) {
			s.refuse["GetFunctionConfiguration"] = "UnrecognizedClientException: The security token included in the request is invalid."
		},
			[]string{"does not accept these credentials"}},
		{"no room", func(s *stub) { s.refuse["CreateFunction"] = "CodeStorageExceededException: 75 GB" }, []string{"delete old versions"}},
		{"creation fails", func(s *stub) { s.reason = "The subnet has no free addresses" },
			[]string{"function dorylus-lambda cannot be used: The subnet has no free addresses (InvalidSubnet)"}},
		{"throttled", func(s *stub) { s.refuse["CreateFunction"] = "TooManyRequestsException: Rate exceeded" }, []string{"Rate exceeded"}},
		{"limit of concurrency", func(s *stub) {
			s.refuse["PutFunctionConcurrency"] = "InvalidParameterValueException: UnreservedConcurrentExecution below its minimum value of [100]."
		},
			[]string{"PutFunctionConcurrency", "below its minimum"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			aws := serveAWS(t)
			x.setUp(aws)
			s := spec(t)
			s.Reserved = 5
			_, err := aws.open(t).Apply(t.Context(), plan(t, s))
			for _, w := range x.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%v, want %q in it", err, w)
				}
			}
		})
	}
}

func TestUpdateErrors(t *testing.T) {
	for want, change := range map[string]func(*stub){
		"function dorylus-lambda could not be updated: disk full (InternalError)": func(s *stub) { s.reason, s.slow = "disk full", 1; s.fn["LastUpdateStatus"] = "InProgress" },
		"runs an image": func(s *stub) { s.fn["PackageType"] = "Image" },
	} {
		aws := serveAWS(t)
		s := spec(t)
		apply(t, aws.open(t), plan(t, s))
		change(aws)
		s.Worker = program(t, amd64, "newer")
		if _, err := aws.open(t).Apply(t.Context(), plan(t, s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// What never comes about is given up.
func TestPatience(t *testing.T) {
	aws := serveAWS(t)
	aws.young = 1 << 30
	a := aws.open(t)
	a.patience = time.Millisecond
	if _, err := a.Apply(t.Context(), plan(t, spec(t))); err == nil || !strings.Contains(err.Error(), "let Lambda take on the new role: it has not come about in 1ms") {
		t.Errorf("%v", err)
	}
}

func TestNoCredentialsNoNetwork(t *testing.T) {
	none := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, os.ErrNotExist
	})
	if _, err := Open(t.Context(), aws.Config{Region: "eu-west-1", Credentials: none}); err == nil || !strings.Contains(err.Error(), "find AWS credentials") || !strings.Contains(err.Error(), "--dry-run needs none") {
		t.Errorf("without credentials: %v", err)
	}
	aws := serveAWS(t)
	aws.url = "http://127.0.0.1:1" // where nobody listens
	if _, err := aws.open(t).Apply(t.Context(), plan(t, spec(t))); err == nil || !strings.Contains(err.Error(), "AWS must be reachable") {
		t.Errorf("without a network: %v", err)
	}
}

func TestSpecErrors(t *testing.T) {
	good := spec(t)
	for want, change := range map[string]func(*Spec){
		`function "a b": a name has`:             func(s *Spec) { s.Function = "a b" },
		`architecture "i386": choose one`:        func(s *Spec) { s.Arch = "i386" },
		"memory of 64 MB":                        func(s *Spec) { s.MemoryMB = 64 },
		"timeout of 16m0s":                       func(s *Spec) { s.Timeout = 16 * time.Minute },
		"no region is set":                       func(s *Spec) { s.Region = "" },
		`role "me" is no ARN`:                    func(s *Spec) { s.Role = "me" },
		`subnet "vpc-1": an id looks like`:       func(s *Spec) { s.Subnets, s.SecurityGroups = []string{"vpc-1"}, []string{"sg-1"} },
		"subnets without a security group":       func(s *Spec) { s.Subnets = []string{"subnet-1"} },
		"a security group without subnets":       func(s *Spec) { s.SecurityGroups = []string{"sg-1"} },
		"reserved concurrency of -1":             func(s *Spec) { s.Reserved = -1 },
		`variable "AWS_LAMBDA_X": a name`:        func(s *Spec) { s.Env = map[string]string{"AWS_LAMBDA_X": "1"} },
		"build it with ./build.sh build":         func(s *Spec) { s.Worker = "no/such" },
		"is no Linux program":                    func(s *Spec) { s.Worker = "deploy_test.go" },
		"is for EM_AARCH64, and the function is": func(s *Spec) { s.Worker = program(t, arm64, "") },
		"port 70000":                             func(s *Spec) { s.Port = 70000 },
	} {
		s := good
		change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// A worker that is too large when zipped, or that needs libraries, is refused; the same
// one gives the same bytes.
func TestPack(t *testing.T) {
	noise := make([]byte, 30_000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	path := program(t, amd64, string(noise))
	if _, err := pack(path, "x86_64", 20_000); err == nil || !strings.Contains(err.Error(), "has 0.0 MB when zipped") {
		t.Errorf("too large: %v", err)
	}
	a, err := Pack(path, "x86_64")
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := Pack(path, "x86_64"); !bytes.Equal(a.Zip, b.Zip) || a.SHA256 != b.SHA256 {
		t.Error("the same program gave different bytes")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[32], data[56] = 64, 1 // one program header follows at byte 64
	header := make([]byte, 56)
	header[0] = 3 // that of a loader
	if err := os.WriteFile(path, slices.Concat(data[:64], header, data[64:]), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(path, "x86_64"); err == nil || !strings.Contains(err.Error(), "is not static") {
		t.Errorf("not static: %v", err)
	}
}

// What is printed for people, and that JSON has the same.
func TestWrite(t *testing.T) {
	s := spec(t)
	s.Env, s.Reserved, s.Port, s.GraphGroup = map[string]string{"B": "2", "AA": "1"}, 100, 7100, "sg-0cafe"
	s.Env = map[string]string{"BB": "2", "AA": "1"}
	s.Subnets, s.SecurityGroups = []string{"subnet-0a", "subnet-0b"}, []string{"sg-01"}
	p := plan(t, s)
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(b.String(), s.Worker, "bin/dorylus-lambda")
	got = strings.ReplaceAll(got, p.Function.CodeSHA256, "SUM")
	if *rewrite {
		if err := os.WriteFile("testdata/plan.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Plan
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back.Function, p.Function) || !reflect.DeepEqual(back.Network, p.Network) || !reflect.DeepEqual(back.Role, p.Role) {
		t.Errorf("JSON %s: %v", data, err)
	}
}
