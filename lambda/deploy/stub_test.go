package deploy

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// stub is the part of AWS that deployments talk to, for one account: IAM's XML and
// Lambda's JSON.
type stub struct {
	t   *testing.T
	url string
	mu  sync.Mutex
	// calls are the operations in the order in which they came.
	calls []string
	role  *stubRole
	fn    map[string]any // the function's configuration; nil: none
	// files are what the code's zip holds.
	files    map[string][]byte
	reserved int
	// refuse answers operations with an error: by name, "CODE: message".
	refuse map[string]string
	// slow is how many more answers say that the function is not ready; young how many
	// more calls find that the role cannot be used yet.
	slow, young int
	vpcs        map[string]string // by subnet
	group       *stubGroup        // nil: none
	// unknown is how many more questions after a group by its id find none.
	unknown int
	// reason makes the next update or creation fail.
	reason string
}

type stubRole struct{ name, trust, policy string }

const account = "123456789012"

func serveAWS(t *testing.T) *stub {
	s := &stub{t: t, refuse: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// open is an account of the stub, in a hurry.
func (s *stub) open(t *testing.T) *Account {
	t.Helper()
	a, err := Open(t.Context(), aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(s.url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.pause, a.patience = time.Microsecond, 10*time.Second
	return a
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	signed := r.Header.Get("Authorization")
	compute := strings.Contains(signed, "/eu-west-1/ec2/")
	if !strings.Contains(signed, "/eu-west-1/lambda/") && !strings.Contains(signed, "/iam/") && !compute {
		s.t.Errorf("%s %s is signed for nobody: %q", r.Method, r.URL, signed)
	}
	if r.URL.Path == "/" {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			s.t.Error(err)
		}
		if compute {
			s.ec2(w, form)
		} else {
			s.iam(w, form)
		}
		return
	}
	in := map[string]any{}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &in); err != nil {
			s.t.Error(err)
		}
	}
	s.lambda(w, r, in)
}

// denied answers with the error that is set for an operation, if one is.
func (s *stub) denied(op string) (code, message string, yes bool) {
	s.calls = append(s.calls, op)
	code, message, yes = strings.Cut(s.refuse[op], ": ")
	return code, message, yes
}

func (s *stub) iam(w http.ResponseWriter, form url.Values) {
	op := form.Get("Action")
	code, message, no := s.denied(op)
	status := http.StatusForbidden
	if !no && op != "CreateRole" && (s.role == nil || s.role.name != form.Get("RoleName")) {
		code, message, no, status = "NoSuchEntity", "The role with name "+form.Get("RoleName")+" cannot be found.", true, http.StatusNotFound
	}
	w.Header().Set("Content-Type", "text/xml")
	if no {
		w.WriteHeader(status)
		fmt.Fprintf(w, `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, code, message)
		return
	}
	switch op {
	case "CreateRole":
		s.role = &stubRole{name: form.Get("RoleName"), trust: form.Get("AssumeRolePolicyDocument")}
	case "PutRolePolicy":
		s.role.policy = form.Get("PolicyDocument")
	}
	var trust bytes.Buffer
	if err := xml.EscapeText(&trust, []byte(url.QueryEscape(s.role.trust))); err != nil {
		s.t.Error(err)
	}
	fmt.Fprintf(w, `<%[1]sResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><%[1]sResult><Role><Path>/</Path><RoleName>%[2]s</RoleName><RoleId>AROA</RoleId><Arn>arn:aws:iam::%[3]s:role/%[2]s</Arn><CreateDate>2026-11-30T00:00:00Z</CreateDate><AssumeRolePolicyDocument>%[4]s</AssumeRolePolicyDocument></Role></%[1]sResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></%[1]sResponse>`,
		op, s.role.name, account, trust.String())
}

func (s *stub) lambda(w http.ResponseWriter, r *http.Request, in map[string]any) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/2015-03-31/functions"), "/configuration")
	op := map[string]string{"GET": "GetFunctionConfiguration", "POST": "CreateFunction", "PUT": "UpdateFunctionConfiguration"}[r.Method]
	switch {
	case strings.HasSuffix(r.URL.Path, "/code"):
		op, name = "UpdateFunctionCode", strings.TrimSuffix(name, "/code")
	case strings.HasSuffix(r.URL.Path, "/concurrency"):
		op = "PutFunctionConcurrency"
	case rest != "" || r.Method == "POST" && name != "" && name != "/":
		s.t.Errorf("asked for %s %s", r.Method, r.URL)
	}
	answer := func(status int, code string, x any) {
		if code != "" {
			w.Header().Set("X-Amzn-ErrorType", code)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(x); err != nil {
			s.t.Error(err)
		}
	}
	if code, message, no := s.denied(op); no {
		answer(http.StatusForbidden, code, map[string]string{"Message": message})
		return
	}
	if op != "CreateFunction" && s.fn == nil {
		answer(http.StatusNotFound, "ResourceNotFoundException", map[string]string{"Message": "Function not found: " + name, "Type": "User"})
		return
	}
	status := http.StatusOK
	switch op {
	case "GetFunctionConfiguration":
		s.settle()
	case "CreateFunction":
		if s.young > 0 {
			s.young--
			answer(http.StatusBadRequest, "InvalidParameterValueException", map[string]string{"Message": "The role defined for the function cannot be assumed by Lambda.", "Type": "User"})
			return
		}
		status, s.fn = http.StatusCreated, in
		s.fn["FunctionArn"] = "arn:aws:lambda:eu-west-1:" + account + ":function:" + in["FunctionName"].(string)
		s.code(in["Code"].(map[string]any)["ZipFile"].(string))
		delete(s.fn, "Code")
		s.pend("State", "Pending")
	case "UpdateFunctionCode":
		s.code(in["ZipFile"].(string))
		s.fn["Architectures"] = in["Architectures"]
		s.pend("LastUpdateStatus", "InProgress")
	case "UpdateFunctionConfiguration":
		for k, v := range in {
			s.fn[k] = v
		}
		s.pend("LastUpdateStatus", "InProgress")
	case "PutFunctionConcurrency":
		s.reserved = int(in["ReservedConcurrentExecutions"].(float64))
		answer(http.StatusOK, "", in)
		return
	}
	answer(status, "", s.fn)
}

func (s *stub) pend(key, value string) {
	if s.fn["LastUpdateStatus"] == "InProgress" || s.fn["State"] == "Pending" {
		if key != "State" {
			s.t.Error("the function is changed while an update is under way")
		}
	}
	s.fn[key] = value
	s.slow = 2
}

// settle ends what is under way when it has been asked after often enough.
func (s *stub) settle() {
	if s.slow--; s.slow > 0 {
		return
	}
	creating := s.fn["State"] == "Pending"
	s.fn["State"], s.fn["LastUpdateStatus"] = "Active", "Successful"
	if s.reason == "" {
		return
	}
	if creating {
		s.fn["State"], s.fn["StateReason"], s.fn["StateReasonCode"] = "Failed", s.reason, "InvalidSubnet"
	} else {
		s.fn["LastUpdateStatus"], s.fn["LastUpdateStatusReason"], s.fn["LastUpdateStatusReasonCode"] = "Failed", s.reason, "InternalError"
	}
}

// code unpacks a zip in base64.
func (s *stub) code(text string) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		s.t.Error(err)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.files = map[string][]byte{}
	for _, f := range z.File {
		if f.Mode().Perm() != 0o755 {
			s.t.Errorf("%s has mode %v: Lambda could not run it", f.Name, f.Mode())
		}
		r, err := f.Open()
		if err != nil {
			s.t.Fatal(err)
		}
		if s.files[f.Name], err = io.ReadAll(r); err != nil {
			s.t.Fatal(err)
		}
	}
	sum := sha256.Sum256(data)
	s.fn["CodeSha256"] = base64.StdEncoding.EncodeToString(sum[:])
}

// program writes a file that passes for a static program of a processor.
func program(t *testing.T, machine byte, tail string) string {
	t.Helper()
	elf := make([]byte, 64)
	copy(elf, "\x7fELF\x02\x01\x01")
	elf[16], elf[18], elf[20] = 2, machine, 1 // an executable of version 1
	elf[52], elf[54], elf[58] = 64, 56, 64    // sizes of its headers
	path := filepath.Join(t.TempDir(), "worker")
	if err := os.WriteFile(path, append(elf, tail...), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const amd64, arm64 = 62, 183
