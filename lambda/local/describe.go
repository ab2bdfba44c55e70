package local

import (
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

// configuration is what GetFunction tells of a function; enough for the SDK's
// waiters and for people.
type configuration struct {
	FunctionName     string
	FunctionArn      string
	Runtime          string
	Role             string
	Handler          string
	CodeSize         int64
	Timeout          int
	MemorySize       int
	LastModified     string
	Version          string
	State            string
	LastUpdateStatus string
	PackageType      string
	Architectures    []string
	Environment      struct{ Variables map[string]string }
}

func (s *Service) describe(f *function, arn string) configuration {
	c := configuration{
		FunctionName: f.name, FunctionArn: arn, Runtime: "provided.al2023", Handler: "bootstrap", Version: version,
		Role:    "arn:aws:iam::" + account + ":role/local",
		Timeout: int(f.Timeout.Seconds()), MemorySize: f.MemoryMB,
		State: "Active", LastUpdateStatus: "Successful", PackageType: "Zip", Architectures: []string{"x86_64"},
	}
	if runtime.GOARCH == "arm64" {
		c.Architectures = []string{"arm64"}
	}
	if st, err := os.Stat(f.Command[0]); err == nil {
		c.CodeSize = st.Size()
		c.LastModified = st.ModTime().UTC().Format("2006-01-02T15:04:05.000+0000")
	}
	c.Environment.Variables = f.Env
	return c
}

func (s *Service) serveConfiguration(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(c configuration) any { return c })
}

func (s *Service) serveFunction(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(c configuration) any {
		return struct{ Configuration configuration }{c}
	})
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request, shape func(configuration) any) {
	f, arn, refused := s.lookup(r)
	if refused != nil {
		s.rejected(r.PathValue("name"), "", refused)
		refused.write(w)
		return
	}
	b, err := json.Marshal(shape(s.describe(f, arn)))
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b)
}
