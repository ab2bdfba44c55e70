package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// staticProgram writes a file that passes for a worker.
func staticProgram(t *testing.T, dir string) {
	t.Helper()
	elf := make([]byte, 64)
	copy(elf, "\x7fELF\x02\x01\x01")
	elf[16], elf[18], elf[20], elf[52], elf[54], elf[58] = 2, 62, 1, 64, 56, 64
	if err := os.WriteFile(filepath.Join(dir, "worker"), append(elf, "a program"...), 0o755); err != nil {
		t.Fatal(err)
	}
}

// awsEnv is the environment of an account at an address; "": without credentials.
func awsEnv(dir, url string) []string {
	env := []string{
		"AWS_CONFIG_FILE=" + filepath.Join(dir, "none"), "AWS_SHARED_CREDENTIALS_FILE=" + filepath.Join(dir, "none"), "AWS_EC2_METADATA_DISABLED=true",
		"AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_PROFILE=", "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=", "AWS_MAX_ATTEMPTS=1",
	}
	if url != "" {
		env = append(env, "AWS_ENDPOINT_URL="+url, "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=eu-west-1")
	}
	return env
}

func TestLambdaDeployDryRun(t *testing.T) {
	dir := t.TempDir()
	staticProgram(t, dir)
	r := call(t, dir, awsEnv(dir, ""), "lambda", "deploy", "--dry-run", "--worker=worker", "--memory=3008", "--env=A1=b",
		"--subnets=subnet-0a,subnet-0b", "--security-groups=sg-01", "--graph-security-group=sg-02", "--port=7100")
	for _, want := range []string{
		"Function dorylus-lambda in us-east-1", "worker as bootstrap, 0.0 MB zipped", "provided.al2023, x86_64", "3008 MB", "900 s", "A1=b", "subnets subnet-0a, subnet-0b",
		"sg-02: tcp at port 7100 from sg-01", "Role dorylus-lambda-worker-role", `"lambda:InvokeFunction"`, `"iam:PassRole"`, "Nothing was made: this was a dry run.",
	} {
		if r.code != exitDone || !strings.Contains(r.out, want) {
			t.Errorf("exit %d: no %q in\n%s%s", r.code, want, r.out, r.err)
		}
	}
	if !strings.Contains(r.err, "No region is set: this is the plan for us-east-1.") {
		t.Errorf("standard error: %s", r.err)
	}
	r = call(t, dir, awsEnv(dir, ""), "lambda", "deploy", "--dry-run", "--worker=worker", "--subnets=subnet-0a", "--graph-security-group=sg-02", "--port=7100")
	for _, want := range []string{"security group dorylus-workers-dorylus-lambda", "lets out tcp at port 7100 to sg-02, and nothing else", `"ec2:CreateSecurityGroup"`} {
		if r.code != exitDone || !strings.Contains(r.out, want) {
			t.Errorf("exit %d: no %q in\n%s%s", r.code, want, r.out, r.err)
		}
	}
	r = call(t, dir, awsEnv(dir, ""), "lambda", "deploy", "--dry-run", "-o", "json", "--worker=worker", "--region=eu-west-1", "--reserved-concurrency=50")
	var plan struct {
		Region   string
		Function struct {
			Runtime  string
			Reserved int `json:"reserved_concurrency"`
		}
		Role struct{ Policy struct{ Statement []any } }
	}
	if err := json.Unmarshal([]byte(r.out), &plan); err != nil || plan.Region != "eu-west-1" || plan.Function.Runtime != "provided.al2023" || plan.Function.Reserved != 50 || len(plan.Role.Policy.Statement) != 1 || r.err != "" {
		t.Errorf("%v: %+v of\n%s%s", err, plan, r.out, r.err)
	}
}

// accountOf answers as IAM and Lambda do, for a role that is there and a function that
// is not yet; refuse denies everything.
func accountOf(t *testing.T, refuse bool) string {
	made := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const arn = "arn:aws:lambda:eu-west-1:123456789012:function:dorylus-lambda"
		switch iam := r.URL.Path == "/"; {
		case refuse:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>you may not</Message></Error></ErrorResponse>`)
		case iam:
			action := r.FormValue("Action")
			fmt.Fprintf(w, `<%[1]sResponse><%[1]sResult><Role><Arn>arn:aws:iam::123456789012:role/%[2]s</Arn></Role></%[1]sResult></%[1]sResponse>`, action, r.FormValue("RoleName"))
		case r.Method == http.MethodGet && !made:
			w.Header().Set("X-Amzn-ErrorType", "ResourceNotFoundException")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"Message": "none"}`)
		default:
			made = true
			fmt.Fprintf(w, `{"FunctionArn": %q, "State": "Active", "LastUpdateStatus": "Successful"}`, arn)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestLambdaDeploy(t *testing.T) {
	dir := t.TempDir()
	staticProgram(t, dir)
	env := awsEnv(dir, accountOf(t, false))
	r := call(t, dir, env, "lambda", "deploy", "--worker=worker")
	for _, want := range []string{"arn:aws:lambda:eu-west-1:123456789012:function:dorylus-lambda was made and can be invoked.", "role/dorylus-lambda-worker-role", `"lambda:InvokeFunction"`} {
		if r.code != exitDone || !strings.Contains(r.out, want) {
			t.Errorf("exit %d: no %q in\n%s%s", r.code, want, r.out, r.err)
		}
	}
	if !strings.Contains(r.err, "function dorylus-lambda: made") {
		t.Errorf("no steps on standard error: %s", r.err)
	}
	r = call(t, dir, env, "lambda", "deploy", "--worker=worker", "--subnets=subnet-1", "--security-groups=sg-01", "--graph-security-group=sg-02", "--port=7100")
	for _, want := range []string{"Workers are in sg-01.", "authorize-security-group-egress --region eu-west-1 --group-id sg-01", "authorize-security-group-ingress --region eu-west-1 --group-id sg-02"} {
		if r.code != exitDone || !strings.Contains(r.out, want) {
			t.Errorf("exit %d: no %q in\n%s%s", r.code, want, r.out, r.err)
		}
	}
	r = call(t, dir, env, "lambda", "deploy", "--worker=worker", "--output=json", "--env=B2=c")
	var res struct {
		Function string `json:"function_arn"`
		Created  bool
	}
	if err := json.Unmarshal([]byte(r.out), &res); err != nil || res.Created || !strings.HasSuffix(res.Function, ":dorylus-lambda") || r.err != "" {
		t.Errorf("%v: %+v of\n%s%s", err, res, r.out, r.err)
	}
}

func TestLambdaDeployErrors(t *testing.T) {
	dir := t.TempDir()
	staticProgram(t, dir)
	write(t, dir, "script", "#!/bin/sh\n")
	deploy := func(env []string, args ...string) result {
		return call(t, dir, env, append([]string{"lambda", "deploy", "--worker=worker"}, args...)...)
	}
	nobody := awsEnv(dir, "http://127.0.0.1:1")
	wantFailure(t, deploy(awsEnv(dir, ""), "--region=eu-west-1"), exitFailed, "find AWS credentials", "AWS_PROFILE", "--dry-run needs none")
	wantFailure(t, deploy(awsEnv(dir, "")), exitUsage, "no region is set")
	wantFailure(t, deploy(nobody), exitFailed, "AWS must be reachable")
	wantFailure(t, deploy(awsEnv(dir, accountOf(t, true))), exitFailed, "you may not", "lack iam:GetRole")
	wantFailure(t, deploy(nobody, "--worker=script"), exitFailed, "is no Linux program", "./build.sh build")
	wantFailure(t, deploy(nobody, "--worker=none"), exitFailed, "./build.sh build")
	wantFailure(t, deploy(nobody, "--arch=arm64"), exitFailed, "is for EM_X86_64, and the function is to be arm64")
	wantFailure(t, deploy(nobody, "--memory=1"), exitUsage, "memory of 1 MB")
	wantFailure(t, deploy(nobody, "--subnets=subnet-1"), exitUsage, "subnets without a security group")
	wantFailure(t, deploy(nobody, "--output=yaml"), exitUsage, "--output=yaml: choose text or json")
	wantFailure(t, deploy(nobody, "--env=x"), exitUsage, "--env=x: give NAME=VALUE")
	wantFailure(t, deploy(nobody, "--subnet=x"), exitUsage, "did you mean --subnets?")
	wantFailure(t, call(t, dir, nil, "lambda", "deplyo"), exitUsage, `did you mean "deploy"?`)
}

// The command is registered, and its help names both parts.
func TestLambdaHelp(t *testing.T) {
	dir := t.TempDir()
	if help := mustRun(t, dir, "--help"); !strings.Contains(help, "lambda ") {
		t.Errorf("lambda is not in\n%s", help)
	}
	help := mustRun(t, dir, "lambda")
	for _, want := range []string{"serve ", "deploy "} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in\n%s", want, help)
		}
	}
	if help := mustRun(t, dir, "lambda", "deploy", "--help"); !strings.Contains(help, "--reserved-concurrency") || !strings.Contains(help, "lambda:InvokeFunction") {
		t.Errorf("the help of deploy is\n%s", help)
	}
}
